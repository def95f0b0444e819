"""Inputs that cannot leave a physical range."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.parameters import Numbers, check_order, common_dim, parameter, per_design


@dataclass(frozen=True, eq=False, repr=False)
class Clipped(InputUncertainty):
    """Another uncertainty, with executed inputs clamped to [low, high]."""

    uncertainty: InputUncertainty
    """Where inputs would land without the limits."""

    low: Numbers = None
    """Smallest executed input, one for all columns or one per column; None: no limit."""

    high: Numbers = None
    """Largest executed input; None: no limit."""

    def __post_init__(self) -> None:
        """Refuse limits in the wrong order or for another number of columns."""
        if not isinstance(self.uncertainty, InputUncertainty):
            raise TypeError(f"Clipped needs an uncertainty, got {self.uncertainty!r}.")
        for name in self._limits():
            object.__setattr__(self, name, parameter(getattr(self, name), name, 1))
        if self.dim is not None:
            self.uncertainty.check_dim(self.dim)
        if self.low is not None and self.high is not None:
            check_order(self.low, self.high)

    def _limits(self) -> dict[str, Numbers]:
        both = {"low": self.low, "high": self.high}
        return {name: limit for name, limit in both.items() if limit is not None}

    @property
    def dim(self) -> int | None:
        """That of the limits, or else of the uncertainty inside."""
        limits = common_dim(self._limits())
        return self.uncertainty.dim if limits is None else limits

    @property
    def is_additive(self) -> bool:
        """False: near a limit the deviation depends on the design."""
        return not self._limits() and self.uncertainty.is_additive

    @property
    def independent_columns(self) -> bool:
        """As for the uncertainty inside."""
        return self.uncertainty.independent_columns

    def n_base(self, d: int) -> int:
        """Return the number that the uncertainty inside takes."""
        return self.uncertainty.n_base(d)

    def check_dim(self, d: int) -> None:
        """Refuse what the limits or the uncertainty inside cannot act on."""
        super().check_dim(d)
        self.uncertainty.check_dim(d)

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        samples = self.uncertainty.perturb(X, base)
        for name, limit in self._limits().items():
            bound = per_design(limit, X, name, 1)
            bound = bound.unsqueeze(-2) if bound.ndim > 1 else bound
            samples = (torch.maximum if name == "low" else torch.minimum)(samples, bound)
        return samples
