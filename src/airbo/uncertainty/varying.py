"""Uncertainties that change with the design: by a function, in steps, by a user's own sampler.

Notation: X designs (*batch n d); fn(X) an uncertainty with parameters (*batch n d), so that P_x
differs from row to row; u base draws (s r); samples (*batch n s d).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty, Numbers
from airbo.uncertainty.composed import Wrapper
from airbo.uncertainty.gaussians import Mixture, Resolution, choose, coarsest, joined, parts_within
from airbo.uncertainty.kinds import Show, numbers


@dataclass(frozen=True, eq=False, repr=False)
class Varying(InputUncertainty):
    """The parameters are functions of the design.

    ``fn`` maps designs x (*batch n d) to an uncertainty whose parameters are tensors of that shape,
    such as ``lambda x: Normal(0.1 * x)``; parameters that are the same everywhere may stay numbers.

    To find out how many base numbers a sample takes, ``fn`` is called with one design (1 d) that is
    ``probe`` in every column, once per number of columns.
    """

    fn: Callable[[Tensor], InputUncertainty]
    """Maps designs to an uncertainty."""

    probe: Numbers = 0.5
    """A design, or one number for all columns, at which ``fn`` can be called."""

    is_additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.fn) or isinstance(self.fn, InputUncertainty):
            raise TypeError(f"Varying needs a function of the designs, got {self.fn!r}.")
        object.__setattr__(self, "probe", numbers(1)(self.probe, "probe"))

    def at(self, X: Float[Tensor, "*batch n d"]) -> InputUncertainty:
        """Return the uncertainty at these designs."""
        # the parameters of fn(X) are tensors over the designs: design i gets its own P_x
        try:
            uncertainty = self.fn(X)
            if not isinstance(uncertainty, InputUncertainty):
                raise TypeError(f"it must return an uncertainty, got {type(uncertainty).__name__}")
            uncertainty.check_dim(X.shape[-1])
        except Exception as error:
            raise ValueError(
                f"The function in Varying, called with designs of shape {tuple(X.shape)}, failed: "
                f"{str(error).rstrip('.')}. It gets many designs at once, as a tensor: calculate "
                "with torch and not with NumPy, and for steps use torch.where or "
                "airbo.uncertainty.Piecewise instead of if."
            ) from error
        return uncertainty

    def n_base(self, d: int) -> int:
        # r of fn(x) at one design; it is the same at all of them
        if d not in self._n_base_by_d:
            self._n_base_by_d[d] = self._at_probe(d).n_base(d)
        return self._n_base_by_d[d]

    @cached_property
    def _n_base_by_d(self) -> dict[int, int]:
        return {}

    def _at_probe(self, d: int) -> InputUncertainty:
        design = torch.tensor(self.probe, dtype=torch.float64).expand(1, d).clone()
        try:
            return self.at(design)
        except ValueError as error:
            raise ValueError(
                f"{error} Varying calls it with {design.tolist()} first: where that is no design "
                "of yours, pass one as Varying(fn, probe=...)."
            ) from error

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        return self.at(X).perturb(X, base)

    def _mean(self, X: Tensor) -> Tensor:
        return self.at(X).mean(X)

    def _covariance(self, X: Tensor) -> Tensor:
        return self.at(X).covariance(X)

    def words(self, show: Show) -> str:
        return "changes with the design, by a function"

    def to_dict(self) -> dict[str, Any]:
        raise TypeError(
            "Varying holds a callable, which cannot be saved. Describe steps with Piecewise, "
            "or keep the function in your code and rebuild the Varying after loading."
        )

    def is_bounded(self, d: int) -> bool:
        return self._at_probe(d).is_bounded(d)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        return self.at(X).cdf(X, t)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        return self.at(X).landing(X, r)


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(Wrapper):
    """Steps in one column: piece i holds where ``edges[i-1] <= x[column] < edges[i]``."""

    edges: Numbers
    """Where one piece ends and the next begins, increasing; an edge belongs to the right piece."""

    pieces: Sequence[InputUncertainty]
    """The uncertainties from left to right, one more than edges."""

    column: int = 0
    """The column of the design that decides."""

    held: ClassVar[str] = "pieces"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim is not None:
            self.check_dim(self.dim)

    @property
    def is_additive(self) -> bool:
        return not self.edges and self.pieces[0].is_additive

    def check_dim(self, d: int) -> None:
        if self.column >= d:
            raise ValueError(f"Piecewise looks at column {self.column}, the design has {d}.")
        super().check_dim(d)

    def select(self, X: Float[Tensor, "*batch n d"]) -> Int64[Tensor, "*batch n"]:
        """Return the number of the piece that holds at each design."""
        # piece i where edges[i-1] <= x_column < edges[i]
        edges = torch.tensor(self.edges, dtype=torch.float64).to(X)
        return torch.bucketize(X[..., self.column].detach().contiguous(), edges, right=True)

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        return self._by_piece(
            X, (base.shape[0], X.shape[-1]), lambda piece, part: piece.perturb(part, base)
        )

    def _mean(self, X: Tensor) -> Tensor:
        return self._by_piece(X, X.shape[-1:], InputUncertainty.mean)

    def _covariance(self, X: Tensor) -> Tensor:
        return self._by_piece(X, X.shape[-1:] * 2, InputUncertainty.covariance)

    def _by_piece(
        self,
        X: Tensor,
        tail: Sequence[int],
        compute: Callable[[InputUncertainty, Tensor], Tensor],
    ) -> Tensor:
        """Let each piece compute its own designs only, and put the results in order."""
        # the rows of each piece are computed by themselves, and go back to where they came from
        designs = X.reshape(-1, X.shape[-1])
        selected = self.select(designs)
        result = X.new_zeros(len(designs), *tail)
        for i, piece in enumerate(self.pieces):
            (rows,) = torch.nonzero(selected == i, as_tuple=True)
            if len(rows):
                result = result.index_copy(0, rows, compute(piece, designs[rows]))
        return result.reshape(*X.shape[:-1], *tail)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) of the piece that holds at x
        options = torch.stack([piece.cdf(X, t) for piece in self.pieces])
        chosen = self.select(X).unsqueeze(-1).expand_as(t)
        return options.gather(0, chosen.unsqueeze(0)).squeeze(0)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        # pieces may split the columns differently: take the finest groups that fit all of them
        options = [piece.landing(X, r) for piece in self.pieces]
        groups = coarsest([part.columns for option in options for part in option])
        return [
            choose(self.select(X), [joined(parts_within(o, own), own) for o in options])
            for own in groups
        ]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sampler(InputUncertainty):
    """A black box with the contract of ``perturb``.

    ``fn(X, base)`` maps designs (*batch n d) and base draws (s r) to samples (*batch n s d). It has
    no randomness of its own: sample i of every design is made from row i of ``base``. Gradients
    are those of ``fn``.
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

    @property
    def dim(self) -> int | None:
        return self.n_columns

    @property
    def is_additive(self) -> bool:
        return self.additive

    def n_base(self, d: int) -> int:
        return d if self.n_uniform is None else self.n_uniform

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = fn(x, u); what comes back has to be finite and (*batch n s d)
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

    def words(self, show: Show) -> str:
        return "drawn by a program"

    def to_dict(self) -> dict[str, Any]:
        raise TypeError(
            "Sampler holds a callable, which cannot be saved. Keep the function in your code and "
            "rebuild the Sampler after loading, or log its deviations in an Empirical."
        )
