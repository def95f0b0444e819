r"""Where a design landed, given what was measured of it.

Notation: m the columns that were measured, r the rest; a block of dependent columns deviates as a
sum of Gaussians with weights w_j, means μ_j and covariances C_j (see ``gaussians``). Then

.. math:: x'_r \mid x'_m &\sim \sum_j w'_j \, \mathcal N(\mu_r + C_{rm} C_{mm}^{-1} (x'_m - \mu_m),
          \; C_{rr} - C_{rm} C_{mm}^{-1} C_{mr}) \\
          w'_j &\propto w_j \, \mathcal N(x'_m; \mu_m, C_{mm})

It is exact for normals and their mixtures, and for a ``Joint``, whose normal scores z are one
normal distribution. Logged rows and black boxes are about a dozen cells first, and points are
blurred in the measured columns by Scott's rule, so that a measurement between two points counts for
both. Independent blocks do not tell anything about each other.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty, as_tensor, with_columns
from airbo.uncertainty.composed import Clipped, Joint, with_exact_rest
from airbo.uncertainty.gaussians import Mixture, Resolution
from airbo.uncertainty.normal import GaussianMixture, Normal

CELLS = Resolution(12)
"""Up to 16 Gaussians: a model compares all pairs of those of two observations."""
_FLOOR = 1e-12
"""Eigenvalues of correlations below this are rounding errors: a column that follows from others."""


def conditional(
    uncertainty: InputUncertainty, design: Sequence[float], executed: Mapping[int, float]
) -> tuple[tuple[float, ...], InputUncertainty]:
    """Return where a design landed, given some columns of the executed input.

    A model takes the result as one of its observations: the point as a row of ``train_X``, and the
    uncertainty as that of this observation.

    >>> import torch
    >>> from airbo import uncertainty as unc
    >>> P = unc.Normal(cov=[[1.0, 0.8], [0.8, 1.0]])
    >>> point, rest = unc.conditional(P, [5.0, 7.0], {0: 6.0})
    >>> point
    (6.0, 7.8)
    >>> rest.covariance(torch.tensor([point]).double())[0].round(decimals=4)
    tensor([[0.0000, 0.0000],
            [0.0000, 0.3600]], dtype=torch.float64)

    Args:
        uncertainty: P_x of all columns.
        design: What was asked for.
        executed: What was measured, by the number of the column.

    Returns:
        A point with the measured columns in it, and the uncertainty around it, which hits these
        exactly.
    """
    d = len(design)
    uncertainty.check_dim(d)
    # x'_m by column; without any, x' ~ P_x as it is
    unknown = sorted(set(executed) - set(range(d)))
    if unknown:
        raise ValueError(f"executed names the columns {unknown}; the design has {d}, from 0.")
    measured = tuple(sorted((c, float(x)) for c, x in executed.items()))
    if not measured:
        return tuple(map(float, design)), uncertainty
    return _conditional(uncertainty, tuple(map(float, design)), measured)


def given_columns(
    uncertainty: InputUncertainty, typical: Sequence[float], known: Mapping[int, float]
) -> InputUncertainty:
    """Return the law of the executed inputs of all designs, given columns that no design changes.

    Args:
        uncertainty: P_x of all columns.
        typical: Where these columns, and those that vary together with them, stand in all designs.
        known: What is known, by the number of the column. It is hit exactly.
    """
    if not known:
        return uncertainty
    given = tuple(sorted((c, float(x)) for c, x in known.items()))
    return _conditional(uncertainty, tuple(map(float, typical)), given, moves=False)[1]


@lru_cache(maxsize=1024)
def _conditional(
    uncertainty: InputUncertainty,
    design: tuple[float, ...],
    measured: tuple[tuple[int, float], ...],
    moves: bool = True,
) -> tuple[tuple[float, ...], InputUncertainty]:
    """Return a point with the measured columns in it, and the uncertainty around it.

    The other columns of the point move to their mean, or stay where they are in the design.
    """
    # blocks are independent: each is known, or untouched, or conditioned on its own columns
    x = torch.tensor(design, dtype=torch.float64)
    landed, known = x.clone(), dict(measured)
    for c, value in known.items():
        landed[c] = value
    blocks: list[InputUncertainty] = []
    columns: list[list[int]] = []
    for block, own in uncertainty.independent_blocks(len(x)):
        if block.is_exact or known.keys() >= set(own):
            continue
        if known.keys().isdisjoint(own):
            blocks.append(block)
            columns.append(list(own))
            continue
        if isinstance(block, Clipped):  # limits stay; at a limit, x' stands for x̃
            given = tuple((i, known[c]) for i, c in enumerate(own) if c in known)
            inside = _conditional(block.uncertainty, tuple(x[list(own)].tolist()), given, False)[1]
            for left, some in inside.independent_blocks(len(own)):
                if not left.is_exact:
                    blocks.append(with_columns(block, some, uncertainty=left))
                    columns.append([own[i] for i in some])
            continue
        if isinstance(block, Joint):
            is_known = [c in known for c in own]
            blocks.append(_rest_of_joint(block, is_known, x[list(own)], landed[list(own)]))
            columns.append([c for c in own if c not in known])
            continue
        for part in block.landing(x[list(own)].unsqueeze(0), CELLS):
            mine = [own[c] for c in part.columns]
            rest = [c for c in mine if c not in known]
            if rest:
                weights, means, covs = _rest(part, [c in known for c in mine], landed[mine])
                if moves:
                    landed[rest] = weights @ means
                is_normal = moves and len(weights) == 1
                around = GaussianMixture(means - landed[rest], covs, weights)
                blocks.append(Normal(cov=covs[0]) if is_normal else around)
                columns.append(rest)
    return tuple(landed.tolist()), with_exact_rest(blocks, columns, len(x))


def _rest_of_joint(
    joint: Joint, known: list[bool], design: Float[Tensor, " b"], landed: Float[Tensor, " b"]
) -> InputUncertainty:
    """Return the uncertainty of the columns that were not measured, around the design."""
    # z ~ N(m, R): its other columns, given those of x'_m
    [z] = joint.scores(design.unsqueeze(0), landed.unsqueeze(0))
    R, m = as_tensor(joint.correlation), as_tensor(joint.centre or (0.0,) * len(z))
    scores = Mixture(tuple(range(len(z))), R.new_ones(1, 1), m[None, None], R[None, None])
    _, [centre], [spread] = _rest(scores, known, z)
    marginals = [u for u, is_known in zip(joint.marginals, known, strict=True) if not is_known]
    return Joint(marginals, spread.tolist(), centre.tolist())


def _rest(
    part: Mixture, known: list[bool], landed: Float[Tensor, " b"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights, means and covariances of the columns that were not measured."""
    is_known = torch.tensor(known)
    m, r = is_known.nonzero().squeeze(-1), (~is_known).nonzero().squeeze(-1)
    w, mu, C = part.weights[0], part.means[0], part.covariances[0].clone()
    if part.spread is None and len(w) > 1:  # points: v n^(-2 / (m + 4)), Scott's rule
        C[:, m, m] += part.moments()[1][0, m, m] * len(w) ** (-2 / (len(m) + 4))

    # columns may have units of different size: R = correlations, C_ij = s_i s_j R_ij
    s = C.diagonal(dim1=-2, dim2=-1).clamp_min(0)
    s = torch.where(s > 0, s, 1.0).sqrt()  # (j, b)
    R = C / s.unsqueeze(-1) / s.unsqueeze(-2)
    R_rm = R[:, r][..., m]
    values, V = torch.linalg.eigh(R[:, m][..., m])
    counts = values > _FLOOR
    inverse = (V * torch.where(counts, 1 / values, 0.0).unsqueeze(-2)) @ V.mT
    z = ((landed - mu) / s)[:, m].unsqueeze(-1)  # (j, m, 1)

    # w'_j ∝ w_j N(x'_m; μ_m, C_mm), in logarithms
    log_det = torch.where(counts, values, 1.0).log().sum(-1) + 2 * s[:, m].log().sum(-1)
    distance = (z.mT @ inverse @ z).flatten()
    weights = torch.softmax(w.log() - 0.5 * (distance + log_det), dim=0)

    # μ_r + C_rm C_mm⁻¹ (x'_m - μ_m) and C_rr - C_rm C_mm⁻¹ C_mr
    means = mu[:, r] + s[:, r] * (R_rm @ inverse @ z).squeeze(-1)
    left = R[:, r][..., r] - R_rm @ inverse @ R_rm.mT
    values, V = torch.linalg.eigh((left + left.mT) / 2)
    covs = (V * torch.where(values > _FLOOR, values, 0.0).unsqueeze(-2)) @ V.mT
    return weights, means, covs * s[:, r].unsqueeze(-1) * s[:, r].unsqueeze(-2)
