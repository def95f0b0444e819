"""Points in a Hilbert space that stand for distributions."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.base_kernels import gaussian_scales
from airbo.embeddings.blocks import Block, choose
from airbo.embeddings.features import Features
from airbo.embeddings.inner import atoms_inner, gaussian_inner
from airbo.uncertainty import InputUncertainty

MAX_ELEMENTS = 4_000_000
"""Largest intermediate result, in numbers, before designs are taken in portions."""


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


class Embedding(Features):
    r"""Features of :math:`\psi_{P_x}`, the mean embedding of P_x under the base kernel.

    The features are weighted Gaussians, or atoms: everything the base kernel has to know about P_x.
    ``inner`` is all that is left to do per pair of designs.
    """

    def __init__(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
    ) -> None:
        """Embed the designs within ``bounds`` under a list of uncertainties."""
        super().__init__(uncertainties, bounds)
        self.base_kernel = base_kernel

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
        if self._only_atoms:
            return self._in_portions(self._atoms_inner, f1, f2, diag)
        return self._scales_inner(f1, f2, diag)

    def squared_norm(self, f: Float[Tensor, "*batch n f"]) -> Float[Tensor, "*batch n"]:
        r"""Return :math:`\|\psi_P\|^2`."""
        return self.inner(f, f, diag=True)

    def mmd2(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\mathrm{MMD}^2 = \|\psi_P - \psi_Q\|^2`."""
        n1, n2 = self.squared_norm(f1), self.squared_norm(f2)
        norms = n1 + n2 if diag else n1.unsqueeze(-1) + n2.unsqueeze(-2)
        return norms - 2 * self.inner(f1, f2, diag)

    def _in_model_coordinates(self, X: Tensor, uncertainty: InputUncertainty) -> list[Block]:
        scaled = []
        for block in self.blocks(X, uncertainty):
            low, width = (b[list(block.columns)] for b in (self.low, self.width))
            areas = width.square() if block.kind == 1 else width.outer(width)
            spread = None if block.spread is None else block.spread / areas
            scaled.append(replace(block, means=(block.means - low) / width, spread=spread))
        return scaled

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

    def _scales_inner(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        scales = gaussian_scales(self.base_kernel)
        if scales is None:
            name = type(self.base_kernel).__name__
            raise TypeError(f"The base kernel {name} is not a sum of Gaussians.")
        weights, precisions = scales.weights, scales.precisions
        if precisions.dim() == 1:
            precisions = precisions.unsqueeze(-1).expand(-1, self.d)

        # While fitting, all scales count: the likelihood has to be smooth in the hyper-parameters.
        least = 0.0 if self.training else 1e-6
        heavy = weights.detach() > least * weights.detach().sum()

        # Under fixed precisions the integrals do not depend on the hyper-parameters: while they
        # are fitted, the ones between the observations are worked out once.
        fixed = not (precisions.requires_grad or f1.requires_grad or f2.requires_grad)
        small = f1.dim() == 2 and len(f1) ** 2 * len(weights) <= 4 * MAX_ELEMENTS
        if fixed and small and f1.shape == f2.shape and torch.equal(f1, f2):
            name = "diagonal" if diag else "grams"
            key = torch.cat([f1.flatten(), precisions.flatten()])
            grams = partial(self._grams, precisions)
            per_scale = self.remembered(name, key, lambda: self._in_portions(grams, f1, f2, diag))
            return scales.constant + per_scale @ weights.where(heavy, 0)

        weights, precisions = weights[heavy], precisions[heavy]
        return scales.constant + self._in_portions(
            lambda *pair: self._grams(precisions, *pair) @ weights, f1, f2, diag
        )

    def _grams(self, precisions: Tensor, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        return gaussian_inner(self._unpack(f1), self._unpack(f2), precisions, diag)

    def _in_portions(self, function: Any, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        """Apply ``function`` to portions of the first designs that fit in memory."""
        per_pair = max(
            part.n_components**2 * len(part.columns) ** max(1, part.kind) for part in self._layout()
        )
        scales = 1 if self._only_atoms else 50
        batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2]).numel()
        per_row = batch * per_pair * scales * (1 if diag else f2.shape[-2])
        n_rows = max(1, MAX_ELEMENTS // per_row)
        if f1.shape[-2] <= n_rows:
            return function(f1, f2, diag)
        dim = -2 if not diag else -1
        portions = [
            function(part, f2[..., i * n_rows : (i + 1) * n_rows, :] if diag else f2, diag)
            for i, part in enumerate(f1.split(n_rows, dim=-2))
        ]
        extra = portions[0].dim() - max(f1.dim(), f2.dim()) + (1 if diag else 0)
        return torch.cat(portions, dim=dim - extra)


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
