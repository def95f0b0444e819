"""Few Gaussians in place of many, for a difference that is as likely as its opposite.

Only logged, sampled or ring-shaped deviations of dependent columns need it. Without it their
posteriors take ten times as long.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from airbo.embeddings.dependent import widened
from airbo.uncertainty import base_draws
from airbo.uncertainty.gaussians import Mixture

SIZES = (1, 9, 35)
"""Gaussians of the coarser views; of cells, the last of them shows no more than the one before."""
N_SHARINGS = 10
"""Steps of expectation maximization."""
N_IMPROVEMENTS = 30
"""Steps of the search for what Gaussian base kernels cannot tell from the many."""
N_RADII, NEAREST_PROBE, FARTHEST_PROBE = 8, 0.1, 10.0
"""Differences at which they look, in standard deviations."""
MOST = 400
"""Gaussians that a fit looks at, at the most."""
SHORTEST = 0.1
"""Length scale down to which a view in every step of a fit has to be right."""
PRECISIONS = tuple(10.0 ** (k / 2) for k in range(-8, 7))
"""Of the base kernels for which errors are known, where the standard deviation is 1."""


@dataclass(frozen=True)
class Views:
    """One difference, more and more finely resolved."""

    views: tuple[Mixture, ...]
    """The coarsest first, the whole difference last."""
    errors: Float[Tensor, "v p"]
    """Of every view, under the base kernels of ``PRECISIONS``."""
    std: Float[Tensor, " b"]
    """Standard deviation of the difference in every column."""

    @classmethod
    def of(cls, medium: Mixture, whole: Mixture) -> "Views":
        """Resolve a difference that is as likely as its opposite.

        Args:
            medium: A few hundred Gaussians at the most.
            whole: The best there is; errors are measured against it.
        """
        many = Gaussians.of(whole)
        std = many.as_one().covs[0].diagonal().sqrt()
        cells = medium.n_components < whole.n_components
        sizes = [n for n in SIZES[: 2 if cells else 3] if 2 * n < medium.n_components]
        few = [view.mixture(whole.columns) for view in reduced(many, sizes)]
        views = [*few, medium] if cells else few
        t = probes(len(std), seed=1)
        safe = torch.where(std > 0, std, 1.0)
        precisions = t.new_tensor(PRECISIONS)
        truth = many.scaled(1 / safe).seen(precisions, t)
        errors = [
            (Gaussians.of(view).scaled(1 / safe).seen(precisions, t) - truth).abs().amax(-1)
            for view in views
        ]
        none = torch.zeros(1, len(PRECISIONS)).to(t)
        return cls((*views, whole), torch.cat([torch.stack(errors), none]) if views else none, std)

    def for_fits(self, again: bool) -> Mixture:
        """Return one view for all base kernels, so that sums are smooth in their precisions.

        Args:
            again: Whether it is used in every step, and should be short if base kernels down to
                ``SHORTEST`` cannot tell.
        """
        if len(self.views) == 1:
            return self.views[0]
        *_, medium, whole = self.views
        largest = medium if whole.n_components > MOST else whole
        if not again:
            return largest
        sharpest = (self.std.max().item() / SHORTEST) ** 2
        known = [k for k, precision in enumerate(PRECISIONS) if precision <= max(sharpest, 1e-4)]
        good = [v for v, e in zip(self.views, self.errors, strict=True) if e[known].max() <= 1e-4]
        return min([*good, largest], key=lambda view: view.n_components)

    def enough(
        self, precisions: Float[Tensor, "q b"], weights: Float[Tensor, " q"], tolerance: float
    ) -> list[Mixture]:
        """Return the coarsest view that is good enough for each weighted Gaussian base kernel."""
        seen = (precisions.double().cpu() * self.std.square()).amax(-1)
        known = self.errors.new_tensor(PRECISIONS).log()
        place = seen.clamp(PRECISIONS[0], PRECISIONS[-1]).log()
        above = torch.searchsorted(known, place).clamp(1, len(known) - 1)
        part = (place - known[above - 1]) / (known[above] - known[above - 1])
        logs = self.errors.clamp_min(1e-300).log()  # errors are powers of the precision
        errors = torch.lerp(logs[:, above - 1], logs[:, above], part).exp()
        good = weights.double().cpu() * errors <= tolerance  # (v, q)
        return [self.views[i] for i in good.int().argmax(0).tolist()]


@dataclass(frozen=True)
class Gaussians:
    """A weighted sum of Gaussians around 0, with the algebra that reducing it takes."""

    weights: Float[Tensor, " j"]
    means: Float[Tensor, "j b"]
    covs: Float[Tensor, "j b b"]

    @classmethod
    def of(cls, mixture: Mixture) -> "Gaussians":
        """Take the only row of a deviation."""
        return cls(mixture.weights[0], mixture.means[0], mixture.covariances[0])

    def mixture(self, columns: tuple[int, ...]) -> Mixture:
        """Return the same as a deviation of some columns."""
        return Mixture(columns, self.weights[None], self.means[None], self.covs[None], True)

    def __getitem__(self, members: Tensor | slice) -> "Gaussians":
        return Gaussians(self.weights[members], self.means[members], self.covs[members])

    def around(self, center: Float[Tensor, " b"]) -> Float[Tensor, "b b"]:
        """Return the mean square of the deviation from a center."""
        return torch.einsum("j,jab->ab", self.weights, self.squares(center)) / self.weights.sum()

    def as_one(self) -> "Gaussians":
        """Return the one Gaussian around 0 with the same mean square."""
        zero = torch.zeros_like(self.means[:1])
        return Gaussians(self.weights.sum(0, keepdim=True), zero, self.around(zero[0])[None])

    def scaled(self, factor: Float[Tensor, " b"]) -> "Gaussians":
        """Return the same in other units."""
        return Gaussians(self.weights, self.means * factor, self.covs * factor.outer(factor))

    def with_opposites(self) -> "Gaussians":
        """Add the mirror images of all but the first."""
        beside = self[1:]
        return Gaussians(
            torch.cat([self.weights, beside.weights]),
            torch.cat([self.means, -beside.means]),
            torch.cat([self.covs, beside.covs]),
        )

    def seen(
        self, precisions: Float[Tensor, " q"], t: Float[Tensor, "p b"]
    ) -> Float[Tensor, "q p"]:
        """Integrate Gaussian base kernels around differences."""
        A, heights = widened(precisions.unsqueeze(-1).expand(-1, t.shape[-1]), self.covs)
        A, heights = A.movedim(1, 0), self.weights * heights.mT  # (q, j, b, b), (q, j)

        # (t + m)ᵀ A (t + m) = tᵀ A t + 2 tᵀ A m + mᵀ A m
        Am = (A @ self.means.unsqueeze(-1)).squeeze(-1)
        products = torch.cat([(t.unsqueeze(-1) * t.unsqueeze(-2)).flatten(-2), 2 * t], dim=-1)
        exponents = products @ torch.cat([A.flatten(-2), Am], dim=-1).mT  # (q, p, j)
        exponents = exponents + (Am * self.means).sum(-1).unsqueeze(-2)
        return (exponents.mul(-0.5).exp() @ heights.unsqueeze(-1)).squeeze(-1)

    def squares(self, center: Tensor) -> Tensor:
        """Return the mean square of each Gaussian's deviation from a center."""
        t = self.means - center
        return self.covs + t.unsqueeze(-1) * t.unsqueeze(-2)


def reduced(many: Gaussians, sizes: Sequence[int]) -> list[Gaussians]:
    """Return sums of few Gaussians that look like the many to Gaussian base kernels.

    The many are put into cells, one around 0 and others in pairs of opposites; expectation
    maximization then lets every one of them share itself among all cells. That keeps the covariance
    and leaves errors of the fourth order in the width of the deviation over that of the base
    kernel; a search for what base kernels see makes these some twenty times smaller.

    Args:
        many: A sum in which every Gaussian has its opposite.
        sizes: About how many there will be in each of the results.
    """
    one = many.as_one()
    std = one.covs[0].diagonal().sqrt()
    if not sizes or max(sizes) == 1 or not bool((std > 0).all()):
        return [one] * len(sizes)
    unit = many.scaled(1 / std)
    target = _Target.of(unit)
    return [one if n == 1 else target.approached(_start(unit, n)).scaled(std) for n in sizes]


def probes(b: int, seed: int) -> Float[Tensor, "p b"]:
    """Return 0 and points of all distances from it, on one side."""
    u = base_draws(3 * b, b, seed).clamp(1e-6, 1 - 1e-6)
    normal = torch.special.ndtri(u)
    directions = torch.cat([torch.eye(b).to(normal), normal / normal.norm(dim=-1, keepdim=True)])
    radii = torch.logspace(math.log10(NEAREST_PROBE), math.log10(FARTHEST_PROBE), N_RADII).to(
        normal
    )
    away = (radii[:, None, None] * directions).flatten(0, 1)
    return torch.cat([torch.zeros(1, b).to(away), away])


def _start(many: Gaussians, n: int) -> Gaussians:
    """Return about n cells; their first half, the central one among them, stands for all."""
    cells = [_Cell(many, torch.arange(len(many.weights)), centred=True)]
    while 2 * len(cells) - 1 < n:
        widest = max(cells, key=lambda cell: cell.importance)
        halves = widest.cut()
        if halves is None:
            break
        cells = halves + [cell for cell in cells if cell is not widest]
    cells.sort(key=lambda cell: not cell.centred)
    parts = ([getattr(cell, name) for cell in cells] for name in ("weight", "mean", "cov"))
    few = Gaussians(*map(torch.stack, parts)).with_opposites()
    for _ in range(N_SHARINGS):
        few = _shared(many, few)
    return few[: len(cells)]


class _Cell:
    """Some of many Gaussians: around 0, or on one side and standing for their opposites too."""

    def __init__(self, many: Gaussians, members: Tensor, centred: bool) -> None:
        self.many, self.members, self.centred = many, members, centred
        own = many[members]
        self.weight = own.weights.sum()
        mean = own.weights @ own.means / self.weight
        self.mean = torch.zeros_like(mean) if centred else mean
        self.cov = own.around(self.mean)
        variances, axes = torch.linalg.eigh(self.cov)
        self._width, self._direction = variances[-1].clamp_min(0).sqrt(), axes[:, -1]
        # a cell of width s that one Gaussian stands for is wrong by O(w s⁴)
        self.importance = ((1 if centred else 2) * self.weight * self._width**4).item()

    def cut(self) -> list["_Cell"] | None:
        """Cut off what is further than its width on both sides, or cut in two."""
        place = (self.many.means[self.members] - self.mean) @ self._direction
        first = place.abs() <= self._width if self.centred else place <= 0
        second = place > self._width if self.centred else place > 0
        if not bool(first.any() and second.any()):
            return None
        inner = _Cell(self.many, self.members[first], self.centred)
        return [inner, _Cell(self.many, self.members[second], False)]


def _shared(many: Gaussians, few: Gaussians) -> Gaussians:
    """Take one step of expectation maximization; the mean and the covariance of all stay."""
    # r_jk ∝ w_k exp(-½ tr C_k⁻¹ S_jk) / |C_k|^½, S_jk = E (x - m_k)(x - m_k)ᵀ under Gaussian j
    L = _roots(few.covs)
    t = many.means.unsqueeze(1) - few.means  # (many, few, b)
    squares = many.covs.unsqueeze(1) + t.unsqueeze(-1) * t.unsqueeze(-2)
    distance = torch.einsum("jkab,kab->jk", squares, torch.cholesky_inverse(L))
    log_det = 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    shares = torch.softmax(few.weights.log() - 0.5 * (distance + log_det), dim=-1)

    shares = shares * many.weights.unsqueeze(-1)
    weights = shares.sum(0)
    shares = shares / weights
    means = shares.mT @ many.means
    outer = torch.einsum("jk,jab->kab", shares, many.squares(torch.zeros_like(means[0])))
    return Gaussians(weights, means, outer - means.unsqueeze(-1) * means.unsqueeze(-2))


@dataclass(frozen=True)
class _Target:
    """What base kernels of several widths see of a deviation around 0 of standard deviation 1."""

    precisions: Float[Tensor, " q"]
    t: Float[Tensor, "p b"]
    values: Float[Tensor, "q p"]
    typical: Float[Tensor, "q 1"]
    """Largest error of one Gaussian."""

    @classmethod
    def of(cls, many: Gaussians) -> "_Target":
        t = probes(many.means.shape[-1], seed=0)
        precisions = torch.logspace(-2, 0.8, 8).to(t)
        values = many.seen(precisions, t)
        errors = (many.as_one().seen(precisions, t) - values).abs()
        return cls(precisions, t, values, errors.amax(-1, keepdim=True).clamp_min(1e-12))

    def approached(self, half: Gaussians) -> Gaussians:
        """Improve a sum, given by its first half; the more there are, the finer base kernels."""
        used = self.precisions < len(half.weights) / 2.5
        copies = torch.tensor([1.0] + [2.0] * (len(half.weights) - 1)).to(self.t)
        start = [(half.weights * copies).log(), half.means[1:], _roots(half.covs)]
        sizes = [v.numel() for v in start]

        def unpacked(x: Tensor) -> Gaussians:
            logits, means, root = (
                v.reshape(like.shape) for v, like in zip(x.split(sizes), start, strict=True)
            )
            means = torch.cat([torch.zeros_like(half.means[:1]), means])
            covs = root.tril() @ root.tril().mT
            return Gaussians(logits.softmax(0) / copies, means, covs).with_opposites()

        def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            x = torch.from_numpy(values).requires_grad_()
            with torch.enable_grad():
                seen = unpacked(x).seen(self.precisions[used], self.t)
                error = ((seen - self.values[used]) / self.typical[used]).square().mean()
                (gradient,) = torch.autograd.grad(error, x)
            return error.item(), gradient.numpy()

        x = torch.cat([v.flatten() for v in start]).numpy()
        options = {"maxiter": N_IMPROVEMENTS, "maxcor": 20, "ftol": 0.0, "gtol": 1e-9}
        found = minimize(loss, x, jac=True, method="L-BFGS-B", options=options)
        return unpacked(torch.from_numpy(found.x))


def _roots(covs: Float[Tensor, "j b b"]) -> Float[Tensor, "j b b"]:
    """Return Cholesky factors, also of what is flat in a direction."""
    return torch.linalg.cholesky(covs + 1e-6 * torch.eye(covs.shape[-1]).to(covs))
