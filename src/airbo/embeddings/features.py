"""What a surrogate knows about a design: numbers that stand for P_x, and points ψ_P.

Notation:

- ``X`` (n, d): designs, perhaps with a column more: the number of their uncertainty;
- ``Z`` (n, d): the same in the unit cube, Z = (X - low) / width;
- ``f`` (n, f): features, everything that a kernel has to know of P_x;
- ψ_P = E_{x' ~ P} k(x', ·): the mean embedding of P under the base kernel k.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.module import Module
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.space.cube import Axes
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.in_cube import in_axes

MAX_DESIGNS = 4096
"""Number of designs whose features are computed at a time."""


FAR = 100.0
"""Ranges of designs beyond which all is equally far: squares of larger numbers overflow."""


class Memory(dict[str, tuple[Tensor, Any]]):
    """What was computed last, by name, each with its key.

    A copy shares what is remembered, which nobody changes; a pickled one starts empty.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> "Memory":
        """Share what is remembered."""
        return Memory(self)

    def __reduce__(self) -> tuple[type["Memory"], tuple[()]]:
        """Forget."""
        return Memory, ()


class Features(Module, ABC):
    """Maps designs in user units to features of P_x in model coordinates.

    A design may carry one more column, the number of the uncertainty that it was made under;
    without it, number 0 applies. Whatever is computed per design is computed here, once: kernels
    compare features and never sample.
    """

    depends_on_hyperparameters = False
    """Whether the features change while a model is fitted."""

    def __init__(
        self, uncertainties: Sequence[InputUncertainty], bounds: Float[Tensor, "2 d"]
    ) -> None:
        """Describe the designs within ``bounds`` under a list of uncertainties."""
        super().__init__()
        self.uncertainties = list(uncertainties)
        # constants, and no part of a state that is loaded: ``once`` relies on them
        self.register_buffer("low", bounds[0].clone(), persistent=False)
        self.register_buffer("width", (bounds[1] - bounds[0]).clone(), persistent=False)
        self._memory = Memory()

    @property
    def in_cube(self) -> list[InputUncertainty]:
        """The uncertainties in the unit cube, where features are made."""
        return self.once("in cube", self._in_cube)

    def _in_cube(self) -> list[InputUncertainty]:
        low, high = (tuple(v.double().tolist()) for v in (self.low, self.low + self.width))
        axes = Axes(tuple(f"column {c}" for c in range(self.d)), low, high, (False,) * self.d)
        return [in_axes(u, axes) for u in self.uncertainties]

    @property
    def d(self) -> int:
        """Number of columns of a design."""
        return len(self.low)

    def number_of(self, uncertainty: InputUncertainty) -> int:
        """Return the number of an uncertainty that these features know."""
        return self.uncertainties.index(uncertainty)

    def including(self, *others: InputUncertainty) -> "Features":
        """Return features that also know other uncertainties; these stay as they are.

        Hyper-parameters are shared.
        """
        # a copy that shares hyper-parameters and bounds, and remembers nothing of this one
        new = [u for u in dict.fromkeys(others) if u not in self.uncertainties]
        for u in new:
            u.check_dim(self.d)
        shared = {id(t): t for t in (*self.parameters(), *self.buffers())}
        larger = deepcopy(self, {**shared, id(self._memory): Memory()})
        larger.uncertainties = [*self.uncertainties, *new]
        return larger

    def forward(self, X: Float[Tensor, "*batch n c"]) -> Float[Tensor, "*batch n f"]:
        """Return the features of designs, with or without the column of uncertainty numbers."""
        if X.requires_grad or self.depends_on_hyperparameters:
            return self._computed(X)
        return self.remembered("features", X, lambda: self._computed(X))

    @abstractmethod
    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return the features of designs made under the uncertainties numbered ``choice``."""

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what follows from uncertainties and bounds, which do not change."""
        if name not in self._memory:
            self._memory[name] = self.low, compute()
        return self._memory[name][1]

    def remembered(self, name: str, key: Tensor, compute: Callable[[], Any]) -> Any:
        """Return what was computed last for the same ``key``, or compute it."""
        known = self._memory.get(name)
        # values decide, not identities: hyper-parameters are changed in place
        if known is None or not _alike(known[0], key):
            known = (key.detach().clone(), compute())
            self._memory[name] = known
        return known[1]

    def _computed(self, X: Tensor) -> Tensor:
        """Compute features of so many designs at a time that what they take fits in memory."""
        if X.shape[:-1].numel() <= MAX_DESIGNS:
            return self.compute(*self._split(X))
        rows = X.reshape(-1, X.shape[-1]).split(MAX_DESIGNS)
        features = torch.cat([self.compute(*self._split(part)) for part in rows])
        return features.unflatten(0, X.shape[:-1])

    def _split(self, X: Tensor) -> tuple[Tensor, Tensor]:
        # (x, number): designs, and which uncertainty they are under; far outside all is alike
        designs, numbers = X[..., : self.d], X[..., self.d :]
        reach = FAR * self.width
        designs = designs.clamp(self.low - reach, self.low + self.width + reach)
        if numbers.shape[-1] == 0:
            return designs, torch.zeros(X.shape[:-1], dtype=torch.long, device=X.device)
        return designs, numbers.squeeze(-1).long()


class Nominal(Features):
    """The design itself: what a plain Gaussian process sees."""

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n d"]:
        """Scale designs to the unit cube."""
        return (X - self.low) / self.width


class Moments(Features):
    """Mean and covariance of P_x: the Gaussian that SKL and expected RBF take it for."""

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return means and flattened covariances in model coordinates."""
        areas = self.width.outer(self.width)
        chosen: Tensor | None = None
        for number, u in enumerate(self.uncertainties):
            # moments in the unit cube: (E x' - low) / width, Cov x' / (width widthᵀ)
            mean, cov = (u.mean(X) - self.low) / self.width, u.covariance(X) / areas
            features = torch.cat([mean, cov.flatten(-2)], dim=-1)
            mine = (choice == number).unsqueeze(-1)
            chosen = features if chosen is None else torch.where(mine, features, chosen)
        assert chosen is not None
        return chosen

    def unpack(
        self, features: Float[Tensor, "*batch n f"]
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch n d d"]]:
        """Split features into means and covariances."""
        mean, cov = features.split([self.d, self.d**2], dim=-1)
        return mean, cov.unflatten(-1, (self.d, self.d))


def _alike(a: Tensor, b: Tensor) -> bool:
    same_kind = (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device)
    return same_kind and torch.equal(a, b)


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
            # ‖ψ_i - ψ_j‖² = K_ii + K_jj - 2 K_ij
            inner = self.inner(f1, f2)
            norms = inner.diagonal(dim1=-2, dim2=-1)
            return norms.unsqueeze(-1) + norms.unsqueeze(-2) - 2 * inner
        # ‖ψ_P‖² + ‖ψ_Q‖² - 2 ⟨ψ_P, ψ_Q⟩
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
    # rows of the upper triangle; the lower one is its mirror image
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
