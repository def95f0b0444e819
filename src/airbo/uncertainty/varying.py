"""Uncertainties that change with the design."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.parameters import Numbers, parameter


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

    def __post_init__(self) -> None:
        """Refuse what cannot be called."""
        if not callable(self.fn) or isinstance(self.fn, InputUncertainty):
            raise TypeError(f"Varying needs a function of the designs, got {self.fn!r}.")
        object.__setattr__(self, "probe", parameter(self.probe, "probe", 1))

    @property
    def is_additive(self) -> bool:
        """False."""
        return False

    def at(self, X: Float[Tensor, "*batch n d"]) -> InputUncertainty:
        """Return the uncertainty at these designs."""
        try:
            uncertainty = self.fn(X)
        except Exception as error:
            raise ValueError(
                f"The function in Varying, called with designs of shape {tuple(X.shape)}, failed: "
                f"{str(error).rstrip('.')}. It gets many designs at once, as a tensor: calculate "
                "with torch and not with NumPy, and for steps use torch.where or "
                "airbo.uncertainty.Piecewise instead of if."
            ) from error
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(
                "The function in Varying must return an uncertainty, "
                f"got {type(uncertainty).__name__}."
            )
        try:
            uncertainty.check_dim(X.shape[-1])
        except ValueError as error:
            raise ValueError(
                f"The function in Varying got designs of shape {tuple(X.shape)} and returned "
                f"{uncertainty}, which does not fit them: {error}"
            ) from error
        return uncertainty

    def n_base(self, d: int) -> int:
        """Return the number that the uncertainty at the probe design takes."""
        if d not in self._n_base_by_d:
            self._n_base_by_d[d] = self._probe_n_base(d)
        return self._n_base_by_d[d]

    @cached_property
    def _n_base_by_d(self) -> dict[int, int]:
        return {}

    def _probe_n_base(self, d: int) -> int:
        design = torch.tensor(self.probe, dtype=torch.float64).expand(1, d).clone()
        try:
            return self.at(design).n_base(d)
        except Exception as error:
            raise ValueError(
                f"Varying calls its function once with the design {design.tolist()}, to see how "
                f"many base numbers a sample takes, and that failed: {error} "
                "Pass a design that works as Varying(fn, probe=...)."
            ) from error

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        return self.at(X).perturb(X, base)

    def _mean(self, X: Tensor) -> Tensor:
        return self.at(X).mean(X)

    def _covariance(self, X: Tensor) -> Tensor:
        return self.at(X).covariance(X)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: a function cannot be saved."""
        raise TypeError(
            "Varying holds a callable, which cannot be saved. Describe steps with Piecewise, "
            "or keep the function in your code and rebuild the Varying after loading."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(InputUncertainty):
    """Steps in one column: piece i holds where ``edges[i-1] <= x[column] < edges[i]``."""

    edges: Numbers
    """Where one piece ends and the next begins, increasing; an edge belongs to the right piece."""

    pieces: Sequence[InputUncertainty]
    """The uncertainties from left to right, one more than edges."""

    column: int = 0
    """The column of the design that decides."""

    def __post_init__(self) -> None:
        """Refuse edges that do not increase and the wrong number of pieces."""
        edges = parameter(self.edges, "edges", 1) if len(self.edges) else ()
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "pieces", tuple(self.pieces))
        if any(not left < right for left, right in pairwise(self.edges)):
            raise ValueError(f"edges must be strictly increasing, got {list(self.edges)}.")
        if len(self.pieces) != len(self.edges) + 1:
            raise ValueError(
                f"{len(self.edges)} edges need {len(self.edges) + 1} pieces, "
                f"got {len(self.pieces)}."
            )
        for piece in self.pieces:
            if not isinstance(piece, InputUncertainty):
                raise TypeError(f"pieces must be uncertainties, got {piece!r}.")
        if isinstance(self.column, bool) or not isinstance(self.column, int) or self.column < 0:
            raise ValueError(f"column must be a whole number >= 0, got {self.column!r}.")
        if self.dim is not None:
            self.check_dim(self.dim)

    @property
    def dim(self) -> int | None:
        """What the pieces agree on."""
        return next((piece.dim for piece in self.pieces if piece.dim is not None), None)

    @property
    def is_additive(self) -> bool:
        """False, unless there is only one piece."""
        return not self.edges and self.pieces[0].is_additive

    @property
    def independent_columns(self) -> bool:
        """True if it is so for all pieces."""
        return all(piece.independent_columns for piece in self.pieces)

    def n_base(self, d: int) -> int:
        """Return the largest number that a piece takes; all use the first of them."""
        return max(piece.n_base(d) for piece in self.pieces)

    def check_dim(self, d: int) -> None:
        """Refuse what a piece cannot act on, and designs without the deciding column."""
        if self.column >= d:
            raise ValueError(f"Piecewise looks at column {self.column}, the design has {d}.")
        for piece in self.pieces:
            piece.check_dim(d)

    def select(self, X: Float[Tensor, "*batch n d"]) -> Int64[Tensor, "*batch n"]:
        """Return the number of the piece that holds at each design."""
        edges = torch.tensor(self.edges, dtype=torch.float64).to(X)
        return torch.bucketize(X[..., self.column].detach().contiguous(), edges, right=True)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        return self._by_piece(
            X, (base.shape[0], X.shape[-1]), lambda piece, part: piece.perturb(part, base)
        )

    def _mean(self, X: Tensor) -> Tensor:
        return self._by_piece(X, X.shape[-1:], lambda piece, part: piece.mean(part))

    def _covariance(self, X: Tensor) -> Tensor:
        return self._by_piece(X, X.shape[-1:] * 2, lambda piece, part: piece.covariance(part))

    def _by_piece(
        self,
        X: Tensor,
        tail: Sequence[int],
        compute: Callable[[InputUncertainty, Tensor], Tensor],
    ) -> Tensor:
        """Let each piece compute its own designs only, and put the results in order."""
        designs = X.reshape(-1, X.shape[-1])
        selected = self.select(designs)
        result = X.new_zeros(len(designs), *tail)
        for i, piece in enumerate(self.pieces):
            (rows,) = torch.nonzero(selected == i, as_tuple=True)
            if len(rows):
                result = result.index_copy(0, rows, compute(piece, designs[rows]))
        return result.reshape(*X.shape[:-1], *tail)
