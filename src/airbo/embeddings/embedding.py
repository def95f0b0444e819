"""Points in a Hilbert space that stand for distributions."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.features import Features
from airbo.uncertainty import InputUncertainty

PORTION = 400_000
"""Numbers that are worked on at a time: what fits in the cache of a processor."""


class Embedding(Features):
    r"""Features of :math:`\psi_{P_x}`, the mean embedding of P_x under the base kernel.

    The features are everything the base kernel has to know about P_x; ``inner`` is all that is left
    to do per pair of designs.
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
    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\langle\psi_P, \psi_Q\rangle` for all pairs, or matching ones."""

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
        if is_same(f1, f2):
            if diag or f1.shape[-2] == 1:
                zero = torch.zeros_like(f1[..., 0])
                return zero if diag else zero.unsqueeze(-1)
            inner = self.inner(f1, f2)
            norms = inner.diagonal(dim1=-2, dim2=-1)
            return norms.unsqueeze(-1) + norms.unsqueeze(-2) - 2 * inner
        n1, n2 = self.squared_norm(f1), self.squared_norm(f2)
        norms = n1 + n2 if diag else n1.unsqueeze(-1) + n2.unsqueeze(-2)
        return norms - 2 * self.inner(f1, f2, diag)


def in_portions(
    function: Callable[[Tensor, Tensor, bool], Tensor],
    f1: Tensor,
    f2: Tensor,
    diag: bool,
    per_pair: int,
    n_trailing: int = 0,
    symmetric: bool = False,
) -> Tensor:
    """Apply ``function`` to portions of the first designs that fit in the cache.

    Args:
        function: Maps features, and ``diag``, to (*batch, n, q, *trailing), or (*batch, n,
            *trailing).
        f1: The features to split.
        f2: The others; split too with ``diag``.
        diag: Whether matching designs are compared, or all pairs.
        per_pair: Numbers that the function holds at a time, per pair of designs.
        n_trailing: Dimensions that the result has after those of the designs.
        symmetric: Whether the two designs of a pair may be exchanged.
    """
    batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2])
    per_row = max(1, batch.numel() * per_pair * (1 if diag else f2.shape[-2]))
    n_rows = max(1, PORTION // per_row)
    if symmetric and not diag and f1.dim() == 2 and len(f1) > n_rows and is_same(f1, f2):
        return _mirrored(function, f1, n_rows)
    if f1.shape[-2] > n_rows:
        parts = f1.split(n_rows, dim=-2)
        others = f2.split(n_rows, dim=-2) if diag else [f2] * len(parts)
        results = [function(a, b, diag) for a, b in zip(parts, others, strict=True)]
        return torch.cat(results, dim=(-1 if diag else -2) - n_trailing)
    per_batch = per_row * f1.shape[-2] // max(1, math.prod(batch[:1]))
    if batch and batch[0] * per_batch > PORTION:
        n_batches = max(1, PORTION // per_batch)
        parts, others = (f.expand(*batch, *f.shape[-2:]).split(n_batches) for f in (f1, f2))
        return torch.cat([function(a, b, diag) for a, b in zip(parts, others, strict=True)])
    return function(f1, f2, diag)


def _mirrored(function: Callable[[Tensor, Tensor, bool], Tensor], f: Tensor, n_rows: int) -> Tensor:
    """Work out one half of a symmetric matrix."""
    n, rows = len(f), []
    for start in range(0, n, n_rows):
        part = function(f[start : start + n_rows], f[start:], False)
        blank = part.new_zeros(part.shape[0], start, *part.shape[2:])
        rows.append(torch.cat([blank, part], dim=1))
    whole = torch.cat(rows)
    below = torch.ones(n, n, dtype=torch.bool, device=f.device).tril(-1)
    return torch.where(below.reshape(n, n, *[1] * (whole.dim() - 2)), whole.transpose(0, 1), whole)


def is_same(f1: Tensor, f2: Tensor) -> bool:
    """Say whether two tensors are one and the same."""
    return f1.data_ptr() == f2.data_ptr() and f1.shape == f2.shape and f1.stride() == f2.stride()
