"""Distributions as sums of weighted Gaussians, compared pair by pair."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.base_kernels import gaussian_scales
from airbo.embeddings.blocks import Block, choose, in_unit_cube
from airbo.embeddings.components import components
from airbo.embeddings.embedding import MAX_REMEMBERED, Embedding, in_portions
from airbo.embeddings.inner import atoms_inner, gaussian_inner
from airbo.embeddings.scales import GaussianScales
from airbo.uncertainty import InputUncertainty


@dataclass(frozen=True)
class _Layout:
    columns: tuple[int, ...]
    n_components: int
    kind: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of weights, means and, unless the block is made of atoms, spreads."""
        j, b = self.n_components, len(self.columns)
        return ((j,), (j, b), (j, *[b] * self.kind))[: 3 if self.kind else 2]

    @property
    def size(self) -> int:
        return sum(map(math.prod, self.shapes))


class MixtureEmbedding(Embedding):
    """Embeds P_x as weighted Gaussians, or atoms: right for every uncertainty."""

    @abstractmethod
    def blocks(self, X: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty) -> list[Block]:
        """Write P_x in user units as weighted components."""

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Pack the components of P_x, in model coordinates."""
        options = [self._in_model_coordinates(X, u) for u in self.uncertainties]
        return torch.cat([_pack(block) for block in choose(choice, options)], dim=-1)

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\langle\psi_P, \psi_Q\rangle` for all pairs, or matching ones."""
        by_scales = self.training or not self._only_atoms
        scales = gaussian_scales(self.base_kernel) if by_scales else None
        if self._only_atoms and (scales is None or not self._fits_by_scales(scales, f1)):
            return self._by_atoms(f1, f2, diag)
        if scales is None:
            name = type(self.base_kernel).__name__
            raise TypeError(f"The base kernel {name} is not a sum of Gaussians.")
        return self._scales_inner(scales, f1, f2, diag)

    def _in_model_coordinates(self, X: Tensor, uncertainty: InputUncertainty) -> list[Block]:
        return in_unit_cube(self.blocks(X, uncertainty), self.low, self.width)

    def _layout(self) -> list[_Layout]:
        """Probe how features are laid out; it is the same for every design."""

        def probe() -> list[_Layout]:
            X = (self.low + 0.5 * self.width).unsqueeze(0)
            with torch.no_grad():
                options = [self._in_model_coordinates(X, u) for u in self.uncertainties]
                blocks = choose(torch.zeros(1, dtype=torch.long, device=X.device), options)
            return [_Layout(b.columns, b.weights.shape[-1], b.kind) for b in blocks]

        return self.remembered("layout", self.low, probe)

    @property
    def _only_atoms(self) -> bool:
        return [part.kind for part in self._layout()] == [0]

    def _unpack(self, f: Tensor) -> list[Block]:
        layout = self._layout()
        parts = f.split([part.size for part in layout], dim=-1)
        return [_unpack(part, where) for part, where in zip(parts, layout, strict=True)]

    def _atoms_inner(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        return atoms_inner(self.base_kernel, self._unpack(f1)[0], self._unpack(f2)[0], diag)

    def _fits_by_scales(self, scales: GaussianScales, f: Tensor) -> bool:
        """Say whether a model is fitted to so few designs that their integrals can be remembered.

        Under fixed precisions those between the observations do not depend on hyper-parameters.
        """
        fixed = not (self.depends_on_hyperparameters or scales.precisions.requires_grad)
        small = f.dim() == 2 and len(f) ** 2 * len(scales.weights) <= MAX_REMEMBERED
        return self.training and fixed and small

    def _scales_inner(self, scales: GaussianScales, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        if not self.training:
            key = torch.cat([p.detach().flatten() for p in self.base_kernel.parameters()])
            scales = self.remembered("scales", key, scales.shortened)
        weights, precisions = scales.weights, scales.precisions
        if precisions.dim() == 1:
            precisions = precisions.unsqueeze(-1).expand(-1, self.d)

        moving = f1.requires_grad or f2.requires_grad
        alike = not moving and f1.shape == f2.shape and torch.equal(f1, f2)
        if alike and self._fits_by_scales(scales, f1):
            name = "diagonal" if diag else "grams"
            key = torch.cat([f1.flatten(), precisions.flatten()])
            grams = partial(self._grams, precisions)
            each = self.remembered(name, key, lambda: self._by_scales(grams, f1, f2, diag, 1))
            return scales.constant + each @ weights
        return scales.constant + self._by_scales(
            lambda *pair: self._grams(precisions, *pair) @ weights, f1, f2, diag
        )

    def _grams(self, precisions: Tensor, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        return gaussian_inner(self._unpack(f1), self._unpack(f2), precisions, diag)

    def _by_atoms(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        n_components = self._layout()[0].n_components
        steps = 5  # results of single steps of the base kernel, held at a time
        return in_portions(self._atoms_inner, f1, f2, diag, steps * n_components**2, symmetric=True)

    def _by_scales(
        self,
        function: Callable[..., Tensor],
        f1: Tensor,
        f2: Tensor,
        diag: bool,
        n_trailing: int = 0,
    ) -> Tensor:
        per_scale = max(
            part.n_components**2 * len(part.columns) ** max(1, part.kind) for part in self._layout()
        )
        return in_portions(function, f1, f2, diag, 50 * per_scale, n_trailing, symmetric=True)


class ComponentEmbedding(MixtureEmbedding):
    """Takes the components of P_x from closed forms, quadrature rules or cells."""

    def __init__(self, n_atoms: int, *args: object) -> None:
        """Resolve what is not Gaussian with ``n_atoms`` components."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_atoms = n_atoms

    def blocks(self, X: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty) -> list[Block]:
        """Write P_x in user units as weighted components."""
        return components(uncertainty, X, self.n_atoms)


def _pack(block: Block) -> Tensor:
    parts = [block.weights, block.means.flatten(-2)]
    if block.spread is not None:
        parts.append(block.spread.flatten(-1 - block.kind))
    return torch.cat(parts, dim=-1)


def _unpack(f: Tensor, layout: _Layout) -> Block:
    parts = f.split([math.prod(shape) for shape in layout.shapes], dim=-1)
    return Block(
        layout.columns, *(p.unflatten(-1, s) for p, s in zip(parts, layout.shapes, strict=True))
    )
