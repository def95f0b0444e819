"""Embeddings under additive uncertainty: all that counts is the difference of two designs."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from linear_operator import to_dense
from torch import Tensor

from airbo.embeddings.base_kernels import RationalQuadraticSum
from airbo.embeddings.blocks import Block, in_unit_cube
from airbo.embeddings.components import components
from airbo.embeddings.embedding import MAX_REMEMBERED, Embedding, is_same
from airbo.embeddings.factors import factors
from airbo.embeddings.integrals import Integrals
from airbo.embeddings.kappa import Kappa, only_table, over_pairs
from airbo.embeddings.resolutions import Resolutions
from airbo.embeddings.weighted import WeightedSum
from airbo.uncertainty import InputUncertainty

FINER = 3
"""Resolution of what is tabulated, as a multiple of that of the rest."""
NEGLIGIBLE = 1e-9
"""Share of the base kernel that a Gaussian has to have, where all take too much time."""
MAX_KINDS = 4
"""Number of uncertainties up to which each pair of them has its own function."""


class ShiftEmbedding(Embedding):
    r"""Embeds designs under :math:`x' = x + \delta` with :math:`\delta` independent of x.

    Under a stationary base kernel

    .. math:: \langle\psi_x, \psi_{x'}\rangle = \kappa(x - x')
              = \mathbb E\, k(x - x' + \delta - \delta')

    so that a design is its own feature, and what P does is in :math:`\kappa`. On a line it is
    tabulated; in several columns it is a sum over the Gaussians of the base kernel, each a product
    over independent groups of columns.
    """

    def __init__(self, n_atoms: int, *args: object) -> None:
        """Resolve what is not Gaussian in several columns with ``n_atoms`` components."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_atoms = n_atoms

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n c"]:
        """Return designs in model coordinates and the numbers of their uncertainties."""
        return torch.cat([(X - self.low) / self.width, choice.unsqueeze(-1).to(X)], dim=-1)

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\kappa` of the differences of all pairs, or matching ones."""
        if len(self.uncertainties) == 1:
            return self._kappa(0, 0, f1, f2, diag)
        total: Tensor | float = 0.0
        for a in _numbers(f1):
            for b in _numbers(f2):
                mine, yours = f1[..., -1] == a, f2[..., -1] == b
                both = mine & yours if diag else mine.unsqueeze(-1) & yours.unsqueeze(-2)
                total = total + torch.where(both, self._kappa(a, b, f1, f2, diag), 0.0)
        assert isinstance(total, Tensor)
        return total

    def squared_norm(self, f: Float[Tensor, "*batch n f"]) -> Float[Tensor, "*batch n"]:
        """Return what the uncertainty of each design says; the design does not matter."""
        norms = [self._at_zero(a) for a in range(len(self.uncertainties))]
        if len(norms) == 1:
            return norms[0].expand(f.shape[:-1])
        return torch.stack(norms)[f[..., -1].long()]

    def mmd2(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\|\psi_P - \psi_Q\|^2`; no sum over designs where there is one P."""
        if len(self.uncertainties) > 1 or (diag and is_same(f1, f2)):
            return super().mmd2(f1, f2, diag)
        return 2 * (self._at_zero(0) - self.inner(f1, f2, diag))

    def _kappa(self, a: int, b: int, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        f1, f2 = f1[..., : self.d], f2[..., : self.d]
        if self._is_exact(a, b):
            return to_dense(self.base_kernel(f1, f2, diag=diag))
        if self.training:
            return self._while_fitting(a, b, f1, f2, diag)
        return self._prepared(a, b)(f1, f2, diag)

    def _at_zero(self, a: int) -> Float[Tensor, ""]:
        if self.training or self._is_exact(a, a):
            origin = self.low.new_zeros(1, self.d)
            return self._kappa(a, a, origin, origin, True)[0]
        return self._prepared(a, a).at_zero

    def _is_exact(self, a: int, b: int) -> bool:
        """Say whether the base kernel itself is asked for.

        Beside another uncertainty it is not: all pairs have to see the same sum of Gaussians.
        """

        def look() -> bool:
            alone = len(self.uncertainties) == 1
            return alone and all(group.exact.is_exact for group in self._groups(a, b))

        return self.remembered(f"exact {a} {b}", self.low, look)

    def _prepared(self, a: int, b: int) -> Kappa:
        """Return the function for the hyper-parameters as they are: made once, used often."""
        assert isinstance(self.base_kernel, RationalQuadraticSum)
        kernel = self.base_kernel

        def prepare() -> Kappa:
            scales = kernel.gaussian_scales()
            return Kappa.under_fixed_hyperparameters(self._groups(a, b), scales)

        return self.remembered(f"kappa {a} {b}", kernel.raw_lengthscales, prepare)

    def _while_fitting(self, a: int, b: int, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        """Sum over all Gaussians: the likelihood has to be smooth in the hyper-parameters.

        Only their weights depend on these, so that the rest is worked out once per fit; or anew
        each time, where it takes too much memory.
        """
        assert isinstance(self.base_kernel, RationalQuadraticSum)
        scales = self.base_kernel.gaussian_scales()
        table = only_table(self._groups(a, b))
        n_pairs = f1.shape[:-1].numel() * (1 if diag else f2.shape[-2])
        moving = f1.requires_grad or f2.requires_grad
        small = n_pairs * len(scales.weights) <= MAX_REMEMBERED
        if small and not moving:
            each = self._integrals(a, b, torch.ones_like(scales.weights) > 0)
            key = torch.cat([f1.flatten(), f2.flatten()])
            name = f"{a} {b} {diag} {n_pairs}"
            known = self.remembered(name, key, lambda: over_pairs(each, f1, f2, diag, each.size, 1))
            return scales.constant + known @ scales.weights
        if table is not None:
            return Kappa.looked_up(table, scales)(f1, f2, diag)
        counts = scales.weights.detach() > NEGLIGIBLE * scales.weights.detach().sum()
        each, weights = self._integrals(a, b, counts), scales.weights[counts]
        if moving or diag or f1.dim() > 2 or f2.dim() > 2:
            return Kappa(scales.constant, each.summed(weights), self.d, each.size)(f1, f2, diag)
        symmetric = a == b and f1.shape == f2.shape and torch.equal(f1, f2)
        summed = WeightedSum.apply(weights, each, f1.detach(), f2.detach(), symmetric)
        assert isinstance(summed, Tensor)
        return scales.constant + summed

    def _integrals(self, a: int, b: int, counts: Tensor) -> Integrals:
        """Return the integrals of those Gaussians that count, at resolutions that do for all."""

        def build() -> Integrals:
            groups = self._groups(a, b)
            precisions = groups[0].exact.precisions[counts.cpu()]
            return Integrals(groups, precisions, torch.ones_like(precisions))

        return self.remembered(f"integrals {a} {b} {counts.all()}", counts, build)

    def _groups(self, a: int, b: int) -> list[Resolutions]:
        def build() -> list[Resolutions]:
            return _groups(
                self.uncertainties[a],
                self.uncertainties[b],
                tuple(self.low.tolist()),
                tuple(self.width.tolist()),
                self.n_atoms,
                len(self.uncertainties) == 1,
            )

        return self.remembered(f"groups {a} {b}", self.low, build)


def suits_shifts(uncertainties: Sequence[InputUncertainty], base_kernel: Kernel) -> bool:
    """Say whether differences of designs are all that counts, and are cheap to evaluate."""
    return (
        isinstance(base_kernel, RationalQuadraticSum)
        and len(uncertainties) <= MAX_KINDS
        and all(u.is_additive for u in uncertainties)
    )


@lru_cache(maxsize=64)
def _groups(
    p: InputUncertainty,
    q: InputUncertainty,
    low: tuple[float, ...],
    width: tuple[float, ...],
    n_atoms: int,
    alone: bool,
) -> list[Resolutions]:
    """Work out what does not depend on hyper-parameters, once per pair of uncertainties.

    Beside other uncertainties there are no coarser resolutions: all pairs have to see the same.
    """
    precisions = RationalQuadraticSum().double().gaussian_scales().precisions
    coarse_and_fine = (n_atoms, FINER * n_atoms)
    deviations = [[_deviation(u, low, width, n) for n in coarse_and_fine] for u in (p, q)]
    found = factors(deviations[0], deviations[1], precisions)
    if not alone or len(low) == 1:
        return [Resolutions(exact) for exact, _ in found]
    return [Resolutions.of(exact, fine) for exact, fine in found]


def _deviation(
    u: InputUncertainty, low: tuple[float, ...], width: tuple[float, ...], n_atoms: int
) -> list[Block]:
    """Write where a design lands, relative to it and in model coordinates, as one row of blocks."""
    origin, scale = (torch.tensor(v, dtype=torch.float64) for v in (low, width))
    return in_unit_cube(components(u, origin.unsqueeze(0), n_atoms), origin, scale)


def _numbers(f: Float[Tensor, "*batch n f"]) -> list[int]:
    return [int(number) for number in f[..., -1].detach().unique()]
