"""What a surrogate knows about a design: numbers that stand for P_x, and points ψ_P.

Notation:

- ``X`` (n, d): designs, perhaps with a column more: the number of their uncertainty;
- ``Z`` (n, d): the same in the unit cube, Z = (X - low) / width;
- ``f`` (n, f): features, everything that a kernel has to know of P_x;
- ψ_P = E_{x' ~ P} k(x', ·): the mean embedding of P under the base kernel k.
"""

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
        self.d = bounds.shape[-1]
        # constants, and no part of a state that is loaded
        self.register_buffer("low", bounds[0].clone(), persistent=False)
        self.register_buffer("width", (bounds[1] - bounds[0]).clone(), persistent=False)
        self.prepare(uncertainties)

    def prepare(self, uncertainties: Sequence[InputUncertainty]) -> None:
        """Work out what follows from the uncertainties and the bounds, and forget all else."""
        self.uncertainties = list(uncertainties)
        # P in the unit cube, where features are made: z = (x - low) / width
        low, high = (tuple(v.double().tolist()) for v in (self.low, self.low + self.width))
        axes = Axes(tuple(f"column {c}" for c in range(self.d)), low, high, (False,) * self.d)
        self.in_cube = [in_axes(u, axes) for u in self.uncertainties]
        self._memory: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was remembered: it can be computed again, and it holds gradients."""
        return {**self.__dict__, "_memory": {}}

    def including(self, *others: InputUncertainty) -> "Features":
        """Return features that also know other uncertainties; these stay as they are.

        Hyper-parameters are shared.
        """
        # a copy that shares hyper-parameters and bounds, and remembers nothing of this one
        new = [u for u in dict.fromkeys(others) if u not in self.uncertainties]
        for u in new:
            u.check_dim(self.d)
        larger = deepcopy(self, {id(t): t for t in (*self.parameters(), *self.buffers())})
        larger.prepare([*self.uncertainties, *new])
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

    def under_own(
        self,
        X: Float[Tensor, "*batch n d"],
        choice: Int64[Tensor, "*batch n"],
        compute: Callable[[Tensor, int], Tensor],
    ) -> Float[Tensor, "*batch n f"]:
        """Return ``compute(X, number)`` for every design under the uncertainty of its number.

        An uncertainty that changes with the design is not asked about other designs: it may be
        undefined there.
        """
        # f_i = compute(x_i, number of i), for one number after the other
        chosen: Tensor | None = None
        for number in choice.unique().tolist():
            # designs under other uncertainties are replaced by one under this
            mine = (choice == number).unsqueeze(-1)
            own = X if bool(mine.all()) else torch.where(mine, X, X[mine.squeeze(-1)][0].detach())
            f = compute(own, number)
            chosen = f if chosen is None else torch.where(mine, f, chosen)
        return X if chosen is None else chosen

    def remembered(self, name: str, key: Tensor, compute: Callable[[], Any]) -> Any:
        """Return what was computed last for the same ``key``, or compute it."""
        known = self._memory.get(name)
        # values decide, not identities: hyper-parameters are changed in place
        kind = key.dtype, key.device
        if known is None or (known[0].dtype, known[0].device) != kind or not known[0].equal(key):
            known = (key.detach().clone(), compute())
            self._memory[name] = known
        return known[1]

    def _computed(self, X: Tensor) -> Tensor:
        """Compute features of so many designs at a time that what they take fits in memory."""
        if X.shape[:-1].numel() > MAX_DESIGNS:
            rows = X.reshape(-1, X.shape[-1]).split(MAX_DESIGNS)
            return torch.cat([self._computed(part) for part in rows]).unflatten(0, X.shape[:-1])
        # (x, number): designs, and which uncertainty they are under; far outside all is alike
        designs, numbers = X[..., : self.d], X[..., self.d :]
        reach = FAR * self.width
        designs = designs.clamp(self.low - reach, self.low + self.width + reach)
        if numbers.shape[-1] == 0:
            return self.compute(designs, torch.zeros_like(X[..., 0], dtype=torch.long))
        return self.compute(designs, numbers.squeeze(-1).long())


class Nominal(Features):
    """The design itself: what a plain Gaussian process sees."""

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n d"]:
        """Scale designs to the unit cube."""
        # z = (x - low) / width
        return (X - self.low) / self.width


class Moments(Features):
    """Mean and covariance of P_x: the Gaussian that SKL and expected RBF take it for."""

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return means and flattened covariances in model coordinates."""
        areas = self.width.outer(self.width)

        def moments(own: Tensor, number: int) -> Tensor:
            # moments in the unit cube: (E x' - low) / width, Cov x' / (width widthᵀ)
            u = self.uncertainties[number]
            mean, cov = (u.mean(own) - self.low) / self.width, u.covariance(own) / areas
            return torch.cat([mean, cov.flatten(-2)], dim=-1)

        return self.under_own(X, choice, moments)

    def unpack(
        self, features: Float[Tensor, "*batch n f"]
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch n d d"]]:
        """Split features into means and covariances."""
        # f = (m, C_11, C_12, ..., C_dd)
        mean, cov = features.split([self.d, self.d**2], dim=-1)
        return mean, cov.unflatten(-1, (self.d, self.d))


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

    def mmd2(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\mathrm{MMD}^2 = \|\psi_P - \psi_Q\|^2`."""
        same_place = f1.data_ptr() == f2.data_ptr() and f1.stride() == f2.stride()
        if same_place and f1.shape == f2.shape:
            if diag or f1.shape[-2] == 1:
                zero = torch.zeros_like(f1[..., 0])
                return zero if diag else zero.unsqueeze(-1)
            # ‖ψ_i - ψ_j‖² = K_ii + K_jj - 2 K_ij
            inner = self.inner(f1, f2)
            norms = inner.diagonal(dim1=-2, dim2=-1)
            return norms.unsqueeze(-1) + norms.unsqueeze(-2) - 2 * inner
        # ‖ψ_P‖² + ‖ψ_Q‖² - 2 ⟨ψ_P, ψ_Q⟩
        n1, n2 = self.inner(f1, f1, diag=True), self.inner(f2, f2, diag=True)
        norms = n1 + n2 if diag else n1.unsqueeze(-1) + n2.unsqueeze(-2)
        return norms - 2 * self.inner(f1, f2, diag)
