r"""Where a design landed, given what was measured of it.

Notation: m the columns that were measured, r the rest; a block of dependent columns deviates as a
sum of Gaussians with weights w_j, means μ_j and covariances C_j (see ``gaussians``). Then

.. math:: x'_r \mid x'_m &\sim \sum_j w'_j \, \mathcal N(\mu_r + C_{rm} C_{mm}^{-1} (x'_m - \mu_m),
          \; C_{rr} - C_{rm} C_{mm}^{-1} C_{mr}) \\
          w'_j &\propto w_j \, \mathcal N(x'_m; \mu_m, C_{mm})

It is exact for normals, their mixtures and rings. Logged rows and black boxes are cells first, and
points are blurred in the measured columns by Scott's rule, so that a measurement between two points
counts for both. Independent blocks do not tell anything about each other.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.columns import Exact
from airbo.uncertainty.composed import Product
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.gaussians import Mixture, Resolution
from airbo.uncertainty.normal import GaussianMixture, Normal, Ring

FINE, COARSE = Resolution(192), Resolution(8)
"""For what is conditioned, 256 cells of dependent columns; for what is not, as in a model."""
MOST_GAUSSIANS = 12
"""What an observation brings into a model, where all pairs of two observations' are compared."""
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
    unknown = sorted(set(executed) - set(range(d)))
    if unknown:
        raise ValueError(f"executed names the columns {unknown}; the design has {d}, from 0.")
    measured = tuple(sorted((c, float(x)) for c, x in executed.items()))
    if not measured:
        return tuple(map(float, design)), uncertainty
    return _conditional(uncertainty, tuple(map(float, design)), measured)


@lru_cache(maxsize=1024)
def _conditional(
    uncertainty: InputUncertainty,
    design: tuple[float, ...],
    measured: tuple[tuple[int, float], ...],
) -> tuple[tuple[float, ...], InputUncertainty]:
    # blocks are independent: each is known, or untouched, or conditioned on its own columns
    x = torch.tensor(design, dtype=torch.float64)
    landed = x.clone()
    for c, value in measured:
        landed[c] = value
    known = {c for c, _ in measured}
    blocks: list[InputUncertainty] = []
    columns: list[list[int]] = []
    for block, own in uncertainty.independent_blocks(len(x)):
        if block.is_exact or known.issuperset(own):
            continue
        if known.isdisjoint(own):
            blocks.append(block)
            columns.append(list(own))
            continue
        if isinstance(block, Ring) and block.is_additive:
            blocks.append(_on_circle(block, (landed - x)[list(own)], known.intersection(own)))
            columns.append([c for c in own if c not in known])
            continue
        at = x[list(own)].unsqueeze(0)
        for fine, coarse in zip(block.landing(at, FINE), block.landing(at, COARSE), strict=True):
            mine = [own[c] for c in fine.columns]
            rest = [c for c in mine if c not in known]
            part = coarse if rest == mine else fine
            if rest:
                landed[rest], around = _rest(part, mine, known, landed)
                blocks.append(around)
                columns.append(rest)
    if not blocks:
        return tuple(landed.tolist()), Exact()
    hit = sorted(set(range(len(x))).difference(*columns))
    return tuple(landed.tolist()), Product([*blocks, Exact()], [*columns, hit])


def _on_circle(ring: Ring, deviation: Float[Tensor, " 2"], known: set[int]) -> InputUncertainty:
    """Return the two points at which a line meets a circle, or the one where it is closest."""
    # δ_r = ±√(ϱ² - δ_m²), each as likely as the other
    assert len(known) == 1
    square = float(ring.radius) ** 2 - float(deviation.square().sum())  # the other one is 0 yet
    half = max(0.0, square) ** 0.5
    return Empirical([[-half], [half]])


def _rest(
    part: Mixture, columns: list[int], known: set[int], landed: Float[Tensor, " d"]
) -> tuple[Tensor, InputUncertainty]:
    """Return the mean of the columns that were not measured, and their uncertainty around it."""
    # w'_j ∝ w_j N(x'_m; μ_m, C_mm), in logarithms
    m = [i for i, c in enumerate(columns) if c in known]
    r = [i for i, c in enumerate(columns) if c not in known]
    w, mu, C = part.weights[0], part.means[0], part.covariances[0]
    blur = _blur(part, m)
    parts = [
        _normal(C_j, landed[[columns[i] for i in m]] - mu_j[m], r, m, blur)
        for mu_j, C_j in zip(mu, C, strict=True)
    ]
    shifts, covs, log_densities = (torch.stack(p) for p in zip(*parts, strict=True))
    weights = torch.softmax(w.log() + log_densities, dim=0)
    weights, means, covs = _joined_neighbours(weights, mu[:, r] + shifts, covs)
    centre = weights @ means
    if len(weights) == 1:
        return centre, Normal(cov=covs[0])
    return centre, GaussianMixture(means - centre, covs, weights)


def _joined_neighbours(
    w: Float[Tensor, " j"], mu: Float[Tensor, "j b"], C: Float[Tensor, "j b b"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Join neighbours along the widest direction; mean and covariance of the whole stay."""
    if len(w) <= MOST_GAUSSIANS:
        return w, mu, C
    # the widest direction of the means: Σ w (μ - μ̄)(μ - μ̄)ᵀ = V Λ Vᵀ
    away = mu - w @ mu
    _, V = torch.linalg.eigh((away * w.unsqueeze(-1)).mT @ away)
    along = away @ V[:, -1]
    counts = w > 1e-6 * w.max()  # the others would stretch the range
    low, high = along[counts].min(), along[counts].max()

    # groups of equal width: W = Σ w, m = Σ w μ / W, S = Σ w (C + (μ - m)(μ - m)ᵀ) / W
    place = ((along - low) / (high - low).clamp_min(1e-300) * MOST_GAUSSIANS).long()
    place = place.clamp(0, MOST_GAUSSIANS - 1)
    share = torch.nn.functional.one_hot(place, MOST_GAUSSIANS).to(w) * w.unsqueeze(-1)  # (j, g)
    share = share[:, share.sum(0) > 0]
    W = share.sum(0)
    share = share / W
    m = share.mT @ mu
    apart = mu.unsqueeze(1) - m  # (j, g, b)
    S = torch.einsum("jg,jab->gab", share, C) + torch.einsum("jg,jga,jgb->gab", share, apart, apart)
    return W, m, S


def _blur(part: Mixture, m: list[int]) -> Float[Tensor, " m"]:
    """Return what is added to the variances of measured columns: for points, by Scott's rule."""
    n = part.n_components
    if n == 1 or bool((part.variances[..., m] > 0).any()):
        return part.means.new_zeros(len(m))
    _, variances = part.moments()  # s² n^(-2 / (m + 4))
    return variances[0, m] * n ** (-2 / (len(m) + 4))


def _normal(
    C: Tensor, deviation: Tensor, r: list[int], m: list[int], blur: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return shift and covariance of the rest, and the log density of what was measured."""
    size = C.diagonal().clamp_min(0)
    size[m] += blur
    size = torch.where(size > 0, size, 1.0).sqrt()  # columns may have units of different size
    R = C / size.outer(size)
    R_mm = R[m][:, m] + torch.diag(blur / size[m].square())
    values, V = torch.linalg.eigh(R_mm)
    inverse = (V * torch.where(values > _FLOOR, 1 / values, 0.0)) @ V.mT
    z = deviation / size[m]

    # shift = C_rm C_mm⁻¹ (x'_m - μ_m), left = C_rr - C_rm C_mm⁻¹ C_mr
    gain = R[r][:, m] @ inverse
    left = R[r][:, r] - gain @ R[m][:, r]
    values_left, W = torch.linalg.eigh((left + left.mT) / 2)
    values_left = torch.where(values_left > _FLOOR, values_left, 0.0)
    covariance = (W * values_left) @ W.mT * size[r].outer(size[r])

    # log N(x'_m; μ_m, C_mm), up to a constant
    log_density = -0.5 * (z @ inverse @ z + values[values > _FLOOR].log().sum())
    return size[r] * (gain @ z), covariance, log_density - size[m].log().sum()
