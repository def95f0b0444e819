"""A user's own function that draws executed inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty, seed_from

NumpyFunction = Callable[[np.ndarray, int, np.random.Generator], Any]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sampler(InputUncertainty):
    """A black box with the contract of ``perturb``.

    ``fn(X, base)`` maps designs (*batch n d) and base draws (s r) to samples (*batch n s d). It has
    no randomness of its own: sample i of every design is made from row i of ``base``. Gradients
    are those of ``fn``. ``Sampler.from_numpy`` takes an ordinary random function instead.
    """

    fn: Callable[[Tensor, Tensor], Tensor]
    n_uniform: int | None
    n_columns: int | None
    additive: bool

    def __init__(
        self,
        fn: Callable[[Tensor, Tensor], Tensor],
        n_base: int | None = None,
        dim: int | None = None,
        additive: bool = False,
    ) -> None:
        """Hold a function.

        Args:
            fn: Maps designs and base draws to samples.
            n_base: Base numbers that one sample takes; by default one per column of the design.
            dim: Number of columns it acts on; by default any.
            additive: Whether you promise that x' = x + δ, with δ independent of x.
        """
        if not callable(fn):
            raise TypeError(f"Sampler needs a function fn(X, base), got {fn!r}.")
        for name, value, smallest in (("n_base", n_base, 0), ("dim", dim, 1)):
            if value is not None and value < smallest:
                raise ValueError(f"{name} must be >= {smallest}, got {value}.")
        object.__setattr__(self, "fn", fn)
        object.__setattr__(self, "n_uniform", n_base)
        object.__setattr__(self, "n_columns", dim)
        object.__setattr__(self, "additive", additive)

    @classmethod
    def from_numpy(cls, fn: NumpyFunction, additive: bool = False) -> "Sampler":
        """Wrap ``fn(x, size, rng)``, which draws executed inputs (size d) for one design (d).

        ``fn`` is called once per design, every time with a NumPy generator in the same state, which
        is derived from the base draws. Its samples move along with the design: the gradient is that
        of a shift, x + (samples - x), with the bracket held constant.
        """
        return cls(_FromNumpy(fn), n_base=1, additive=additive)

    @property
    def dim(self) -> int | None:
        """As given."""
        return self.n_columns

    @property
    def is_additive(self) -> bool:
        """As promised."""
        return self.additive

    def n_base(self, d: int) -> int:
        """Return the number given, or d."""
        return d if self.n_uniform is None else self.n_uniform

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        samples = self.fn(X, base)
        expected = (*X.shape[:-1], base.shape[0], X.shape[-1])
        if not isinstance(samples, Tensor):
            raise TypeError(f"The sampler must return a tensor, got {type(samples).__name__}.")
        if samples.shape != expected:
            raise ValueError(
                f"The sampler must return samples of shape {tuple(expected)}, "
                f"got {tuple(samples.shape)}."
            )
        if not torch.isfinite(samples).all():
            raise ValueError("The sampler returned samples that are nan or infinite.")
        return samples.to(X)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: a function cannot be saved."""
        raise TypeError(
            "Sampler holds a callable, which cannot be saved. Keep the function in your code and "
            "rebuild the Sampler after loading, or log its deviations in an Empirical."
        )


@dataclass(frozen=True)
class _FromNumpy:
    """The contract of ``perturb`` around a random NumPy function of one design."""

    fn: NumpyFunction

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"from_numpy needs a function fn(x, size, rng), got {self.fn!r}.")

    def __call__(self, X: Tensor, base: Tensor) -> Tensor:
        seed, size, d = seed_from(base), base.shape[0], X.shape[-1]
        rows = X.detach().double().cpu().numpy().reshape(-1, d)
        drawn = np.empty((len(rows), size, d))
        for i, x in enumerate(rows):
            drawn[i] = self._draw(x, size, seed)
        samples = torch.from_numpy(drawn).to(X).reshape(*X.shape[:-1], size, d)
        designs = X.unsqueeze(-2)
        return designs + (samples - designs).detach()

    def _draw(self, x: np.ndarray, size: int, seed: int) -> np.ndarray:
        drawn = np.asarray(self.fn(x.copy(), size, np.random.default_rng(seed)), dtype=np.float64)
        if drawn.shape != (size, len(x)):
            raise ValueError(
                f"The sampler must return samples of shape {(size, len(x))}, got {drawn.shape}."
            )
        return drawn
