r"""Where a design landed, given what was measured of it.

With deviations :math:`\delta_m` measured and :math:`\delta_r` not, a normal deviation has

.. math:: \delta_r \mid \delta_m \sim \mathcal N(C_{rm} C_{mm}^{-1} \delta_m, \;
          C_{rr} - C_{rm} C_{mm}^{-1} C_{mr})

and a mixture of normals is a mixture of these, weighted with the densities of :math:`\delta_m`.
Independent columns do not tell anything about each other.

Where there is no closed form there are rows: logged deviations, or draws. Rows that do not change
with the design are read as :math:`\delta_r = g(\delta_m) + \varepsilon`. Here g is the mean of the
nearest rows, and :math:`\varepsilon` has one distribution for all experiments. The variance is then
right on average, and a model is much faster with one distribution than with one per experiment.
Where rows change with the design, a few of the nearest ones stand for the rest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, singledispatch
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.uncertainty.additive import Exact, Ring
from airbo.uncertainty.base import InputUncertainty, base_draws
from airbo.uncertainty.columns import some_columns
from airbo.uncertainty.empirical import Empirical
from airbo.uncertainty.gaussian import Normal
from airbo.uncertainty.mixture import GaussianMixture
from airbo.uncertainty.parameters import as_tensor
from airbo.uncertainty.product import Product
from airbo.uncertainty.relative import Relative
from airbo.uncertainty.scaled import Scaled, stretch
from airbo.uncertainty.varying import Piecewise, Varying

N_BLIND = 2**13
"""Draws of P_x where nothing else is known of it."""
N_RESIDUALS, N_NEAREST = 256, 12
"""Rows that stand for ε, and rows that stand for the rest where P_x changes with the design."""

Rest = tuple[Tensor, InputUncertainty]
"""A shift of the columns that were not measured, and their uncertainty around it."""


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
    return _conditional(uncertainty, tuple(map(float, design)), measured)


@lru_cache(maxsize=1024)
def _conditional(
    uncertainty: InputUncertainty,
    design: tuple[float, ...],
    measured: tuple[tuple[int, float], ...],
) -> tuple[tuple[float, ...], InputUncertainty]:
    x = torch.tensor(design, dtype=torch.float64)
    landed = x.clone()
    for c, value in measured:
        landed[c] = value
    own = [c for c, _ in measured]
    rest = [c for c in range(len(design)) if c not in own]
    shift, around = _given(uncertainty, x, landed, rest, own)
    landed[rest] += shift
    if isinstance(around, Exact):
        return tuple(landed.tolist()), Exact()
    return tuple(landed.tolist()), Product([around, Exact()], [rest, own]) if own else around


def _given(
    u: InputUncertainty, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]
) -> Rest:
    """Look at some columns of a design, given the others of its executed input."""
    none = x.new_zeros(len(rest))
    if not rest or isinstance(u, Exact):
        return none, Exact()
    if not measured:
        return none, u
    return _rest(u, x, landed, rest, measured)


@singledispatch
def _rest(
    u: InputUncertainty, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]
) -> Rest:
    none = x.new_zeros(len(rest))
    if u.independent_columns:
        alike = u.dim is None and (u.is_additive or u.is_multiplicative)
        own = u if alike else some_columns(u, rest)
        if own is not None:
            return none, own
    draws = u.perturb(x.unsqueeze(0), base_draws(N_BLIND, u.n_base(len(x))))[0] - x
    rows = _Divided(draws[:, measured], draws[:, rest])
    deviation = (landed - x)[measured]
    return rows.regressed(deviation) if u.is_additive else rows.nearest(deviation)


@_rest.register
def _(u: Empirical, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    deviations = as_tensor(u.deviations)
    rows = _Divided(deviations[:, measured], deviations[:, rest])
    return rows.regressed((landed - x)[measured])


class _Divided:
    """Deviations that were logged or drawn, divided into what was measured and the rest."""

    def __init__(self, known: Float[Tensor, "n m"], rest: Float[Tensor, "n r"]) -> None:
        """Measure distances in standard deviations of each column."""
        spread = known.std(dim=0, correction=0)
        self.scale = torch.where(spread > 0, spread, 1.0)
        self.known, self.rest = known / self.scale, rest
        self.k = min(len(rest), math.ceil(2 * math.sqrt(len(rest))))

    def regressed(self, deviation: Float[Tensor, " m"]) -> Rest:
        """Return g(δ_m), and ε from rows chosen at random, always the same ones."""
        shuffled = torch.randperm(len(self.rest), generator=torch.Generator().manual_seed(0))
        some = shuffled[:N_RESIDUALS]
        residuals = self.rest[some] - self._local_mean(self.known[some])
        shift = self._local_mean((deviation / self.scale).unsqueeze(0))[0]
        return shift, Empirical(residuals - residuals.mean(dim=0))

    def nearest(self, deviation: Float[Tensor, " m"]) -> Rest:
        """Return the nearest rows, evenly thinned out."""
        rows = self.rest[self._nearest((deviation / self.scale).unsqueeze(0))[0]]
        rows = rows[rows[:, 0].argsort()]
        even = torch.linspace(0, len(rows) - 1, 2 * N_NEAREST + 1)[1::2].round().long()
        return torch.zeros_like(rows[0]), Empirical(rows[even])

    def _local_mean(self, at: Float[Tensor, "n m"]) -> Float[Tensor, "n r"]:
        return self.rest[self._nearest(at)].mean(dim=-2)

    def _nearest(self, at: Float[Tensor, "n m"]) -> Int64[Tensor, "n k"]:
        return torch.cdist(at, self.known).topk(self.k, largest=False).indices


@_rest.register
def _(u: Normal, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    if u.cov is None:
        return x.new_zeros(len(rest)), some_columns(u, rest) or u
    deviation = (landed - x)[measured]
    shift, covariance, _ = _normal(as_tensor(u.cov), deviation, rest, measured)
    return shift, Normal(cov=covariance)


@_rest.register
def _(u: GaussianMixture, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    deviation = (landed - x)[measured]
    means, covs = as_tensor(u.means), as_tensor(u.covs)
    parts = [
        _normal(C, deviation - m[measured], rest, measured)
        for m, C in zip(means, covs, strict=True)
    ]
    shifts, covariances, log_densities = (torch.stack(p) for p in zip(*parts, strict=True))
    weights = torch.softmax(as_tensor(u.weights).log() + log_densities, dim=0)
    mixture = GaussianMixture(means[:, rest] + shifts, covariances, weights)
    return x.new_zeros(len(rest)), mixture


def _normal(
    C: Tensor, deviation: Tensor, rest: list[int], measured: list[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return mean and covariance of the rest, and the log density of what was measured."""
    size = C.diagonal().clamp_min(0).sqrt()
    size = torch.where(size > 0, size, 1.0)  # columns may have units of different size
    R = C / size.outer(size)
    values, V = torch.linalg.eigh(R[measured][:, measured])
    floor = 1e-12  # what is smaller is a rounding error: a column that follows from others
    inverse = (V * torch.where(values > floor, 1 / values, 0.0)) @ V.mT
    z = deviation / size[measured]
    gain = R[rest][:, measured] @ inverse

    mean = size[rest] * (gain @ z)
    left = R[rest][:, rest] - gain @ R[measured][:, rest]
    values_left, W = torch.linalg.eigh((left + left.mT) / 2)
    values_left = torch.where(values_left > floor, values_left, 0.0)
    covariance = (W * values_left) @ W.mT * size[rest].outer(size[rest])
    log_density = -0.5 * (z @ inverse @ z + values[values > floor].log().sum())
    return mean, covariance, log_density - size[measured].log().sum()


@_rest.register
def _(u: Ring, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    # the circle meets the line δ_m at two points, or is closest to it at one
    (deviation,) = (landed - x)[measured]
    half = max(0.0, float(u.radius) ** 2 - deviation.item() ** 2) ** 0.5
    return x.new_zeros(1), Empirical([[-half], [half]])


@_rest.register
def _(u: Relative, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    shares = stretch(u.share, x.tolist())  # x' = x + x δ
    return _whole_or_rest(u, shares, x, landed, rest, measured)


@_rest.register
def _(u: Scaled, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    scaled = stretch(u.uncertainty, [u.factor] * len(x))
    return _whole_or_rest(u, scaled, x, landed, rest, measured)


def _whole_or_rest(
    u: InputUncertainty, same: InputUncertainty | None, x: Tensor, *others: Any
) -> Rest:
    """Look at what is the same at this design, unless columns are independent, or there is none."""
    if same is None or u.independent_columns:
        return _rest.dispatch(InputUncertainty)(u, x, *others)
    return _rest(same, x, *others)


@_rest.register
def _(u: Varying, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    return _rest(_constant(u.at(x.unsqueeze(0))), x, landed, rest, measured)


@_rest.register
def _(u: Piecewise, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    return _given(u.pieces[int(u.select(x.unsqueeze(0)))], x, landed, rest, measured)


@_rest.register
def _(u: Product, x: Tensor, landed: Tensor, rest: list[int], measured: list[int]) -> Rest:
    shift, blocks, columns = torch.zeros_like(x), [], []
    for block, own in zip(u.blocks, u.layout(len(x)), strict=True):
        inside = [[i for i, c in enumerate(own) if c in some] for some in (rest, measured)]
        left = [own[i] for i in inside[0]]
        shift[left], around = _given(block, x[list(own)], landed[list(own)], *inside)
        if left:
            blocks.append(around)
            columns.append([rest.index(c) for c in left])
    if all(isinstance(block, Exact) for block in blocks):
        return shift[rest], Exact()
    return shift[rest], Product(blocks, columns)


def _constant(u: InputUncertainty) -> InputUncertainty:
    """Return an uncertainty that was made for one design, (1 d), with its parameters as numbers."""
    if isinstance(u, Product):
        return replace(u, blocks=tuple(_constant(block) for block in u.blocks))
    made: Any = u
    values = {f.name: getattr(u, f.name) for f in fields(made)}
    tensors = {name: v.detach()[0] for name, v in values.items() if isinstance(v, Tensor)}
    return replace(made, **tensors) if tensors else u
