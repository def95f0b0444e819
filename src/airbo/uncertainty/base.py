"""What every input uncertainty can do, and the base draws that samples are made from."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from airbo.uncertainty.parameters import Numbers

if TYPE_CHECKING:
    from airbo.uncertainty.clipped import Clipped

_MOMENT_DRAWS = 4096
_LONGEST_REPR = 120


def base_draws(
    n_samples: int,
    n_base: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Float[Tensor, "s r"]:
    """Draw uniform numbers strictly inside (0, 1): a scrambled Sobol sequence.

    The numbers depend on the arguments alone; global random states are neither read nor changed.
    Beyond the 21,201 columns of the Sobol engine, the numbers come from a seeded generator instead.
    """
    if n_samples < 1 or n_base < 0:
        raise ValueError(f"Need n_samples >= 1 and n_base >= 0, got {n_samples} and {n_base}.")
    if n_base == 0:
        return torch.zeros(n_samples, 0, dtype=dtype, device=device)
    if n_base <= SobolEngine.MAXDIM:
        engine = SobolEngine(n_base, scramble=True, seed=seed)
        cell = 2.0**-SobolEngine.MAXBIT
        u = engine.draw(n_samples, dtype=torch.float64) + cell / 2  # the middle of each cell
    else:
        generator = torch.Generator().manual_seed(seed)
        u = torch.rand(n_samples, n_base, generator=generator, dtype=torch.float64)
    return _inside(u.to(dtype=dtype, device=device))


def _inside(u: Tensor) -> Tensor:
    """Keep numbers strictly inside (0, 1), whatever rounding did to them."""
    half_eps = torch.finfo(u.dtype).eps / 2
    return u.clamp(half_eps, 1 - half_eps)


def seed_from(base: Float[Tensor, "s r"]) -> int:
    """Derive a 32-bit seed from base draws, for samplers that bring their own generator."""
    data = base.detach().double().cpu().contiguous().numpy().tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=4).digest(), "little")


@lru_cache(maxsize=32)
def _moment_draws(n_base: int) -> Tensor:
    return base_draws(_MOMENT_DRAWS, n_base)


class InputUncertainty(ABC):
    r"""The distribution :math:`P_x` of the executed input x' when the design x is asked for.

    Kinds are frozen values that are checked when they are made. They implement ``n_base`` and
    ``_perturb``, and ``_mean`` and ``_covariance`` where there is a closed form.
    """

    @property
    def dim(self) -> int | None:
        """Number of columns it acts on; None: any number, all independent and alike."""
        return None

    @property
    @abstractmethod
    def is_additive(self) -> bool:
        """Whether x' = x + δ, with δ independent of x."""

    @property
    def is_multiplicative(self) -> bool:
        """Whether x' = x ε, with ε > 0 independent of x: additive on a log scale."""
        return False

    @property
    def independent_columns(self) -> bool:
        """Whether the columns of x' given x are independent, column j made from base column j."""
        return False

    @abstractmethod
    def n_base(self, d: int) -> int:
        """Return how many uniform numbers one sample of a design with ``d`` columns takes."""

    @abstractmethod
    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        """Do the work of ``perturb``, with arguments that were checked."""

    def perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        """Return samples of the executed inputs: a fixed function of designs and base draws.

        Sample i of every design is made from row i of ``base`` (common random numbers). Only the
        first ``n_base(d)`` columns of ``base`` are used.
        """
        self.check_dim(X.shape[-1])
        needed = self.n_base(X.shape[-1])
        if base.shape[-1] < needed:
            raise ValueError(
                f"{type(self).__name__} needs {needed} base numbers per sample for designs with "
                f"{X.shape[-1]} columns, got base draws with {base.shape[-1]}."
            )
        return self._perturb(X, _inside(base[:, :needed].to(X)))

    def mean(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """Return the mean of x' given each design."""
        self.check_dim(X.shape[-1])
        return self._mean(X)

    def covariance(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d d"]:
        """Return the covariance matrix of x' given each design."""
        self.check_dim(X.shape[-1])
        return self._covariance(X)

    def _mean(self, X: Tensor) -> Tensor:
        """Estimate the mean from fixed Sobol draws."""
        if self.is_additive:
            return X + self._moment_samples(X.new_zeros(1, X.shape[-1])).mean(dim=-2)
        return self._moment_samples(X).mean(dim=-2)

    def _covariance(self, X: Tensor) -> Tensor:
        """Estimate the covariance from fixed Sobol draws."""
        d = X.shape[-1]
        samples = self._moment_samples(X.new_zeros(1, d) if self.is_additive else X)
        centred = samples - samples.mean(dim=-2, keepdim=True)
        return (centred.mT @ centred / _MOMENT_DRAWS).expand(*X.shape, d)

    def _moment_samples(self, X: Tensor) -> Tensor:
        return self.perturb(X, _moment_draws(self.n_base(X.shape[-1])))

    def check_dim(self, d: int) -> None:
        """Refuse designs with a number of columns that this uncertainty cannot act on."""
        if self.dim is not None and d != self.dim:
            raise ValueError(
                f"{type(self).__name__} acts on designs with {self.dim} columns, got {d}."
            )

    def clipped(self, low: Numbers = None, high: Numbers = None) -> "Clipped":
        """Return this uncertainty with executed inputs clamped to [low, high]."""
        from airbo.uncertainty.clipped import Clipped

        return Clipped(self, low, high)

    def to_dict(self) -> dict[str, Any]:
        """Return a description out of plain lists, numbers and strings; see ``from_dict``."""
        kind = type(self).__name__
        values = ((f.name, getattr(self, f.name)) for f in _fields(self))
        return {"kind": kind} | {n: _plain(v, f"{kind}.{n}") for n, v in values if v is not None}

    def to_json(self) -> str:
        """Return the description as JSON; see ``from_json``."""
        return json.dumps(self.to_dict())

    @cached_property
    def _key(self) -> Hashable:
        """What makes this uncertainty equal to another one."""
        return tuple(_frozen(getattr(self, f.name)) for f in _fields(self))

    def __eq__(self, other: object) -> bool:
        """Compare by kind and by value, tensors included."""
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        """Hash by kind and value."""
        return hash((type(self).__name__, self._key))

    def __deepcopy__(self, memo: Any) -> "InputUncertainty":
        """Return itself: a frozen value, which a copy of its function would make another one."""
        return self

    def __repr__(self) -> str:
        """Show the parameters that differ from their default."""
        shown = ((f.name, getattr(self, f.name), f.default) for f in _fields(self))
        parts = [f"{n}={_short(v)}" for n, v, default in shown if _frozen(v) != default]
        return f"{type(self).__name__}({', '.join(parts)})"


def _fields(uncertainty: InputUncertainty) -> tuple[Any, ...]:
    return fields(uncertainty) if is_dataclass(uncertainty) else ()


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, InputUncertainty):
        return value.to_dict()
    if isinstance(value, Tensor):
        raise TypeError(
            f"{name} is a tensor made from designs, which cannot be saved. "
            "Save the constants or the Piecewise that it comes from."
        )
    return [_plain(v, name) for v in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return tuple(value.shape), tuple(value.detach().flatten().tolist())
    return tuple(_frozen(v) for v in value) if isinstance(value, tuple) else value


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"<tensor of shape {tuple(value.shape)}>"
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    if isinstance(value, tuple) and (len(value) > 50 or len(repr(value)) > _LONGEST_REPR):
        return f"<{len(value)} values>"
    return repr(value)
