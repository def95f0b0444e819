"""What a surrogate knows about a design: a vector of numbers that stands for P_x."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
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
        self.register_buffer("low", bounds[0].clone())
        self.register_buffer("width", (bounds[1] - bounds[0]).clone())
        self._memory = Memory()

    @property
    def in_cube(self) -> list[InputUncertainty]:
        """The uncertainties in the unit cube, where features are made."""
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

    def remembered(self, name: str, key: Tensor, compute: Callable[[], Any]) -> Any:
        """Return what was computed last for the same ``key``, or compute it."""
        known = self._memory.get(name)
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
