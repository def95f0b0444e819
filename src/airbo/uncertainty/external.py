"""Distributions of other libraries: scipy.stats and torch.distributions.

Notation: u base draws (s d); Q a quantile function, so that δ = Q(u) is the deviation.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # scipy.stats is imported when it is used: it takes half a second
import torch
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty, seed_from
from airbo.uncertainty.kinds import Show, from_dict, numbers, said


@dataclass(frozen=True, eq=False, repr=False)
class SciPy(InputUncertainty):
    """The deviation follows a univariate, frozen distribution of ``scipy.stats``.

    It applies to every column independently, by its quantile function; with vector parameters, one
    entry per column. For dependent columns, use ``Normal(cov=...)``, ``GaussianMixture``,
    ``Empirical`` with draws of them, or ``Sampler``.
    """

    frozen: Any
    """The distribution with its parameters, such as ``scipy.stats.gamma(2, scale=0.1)``."""

    is_additive: ClassVar[bool] = True
    independent_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(getattr(self.frozen, "dist", None), _generic()):
            raise TypeError(
                "SciPy needs a univariate scipy.stats distribution with its parameters, such as "
                f"norm(scale=0.1), got {type(self.frozen).__name__}."
            )
        if len(self._shape) > 1:
            raise ValueError(
                f"Parameters must be numbers or vectors, got arrays of shape {self._shape}."
            )
        if not np.isfinite(self.frozen.median()).all():
            raise ValueError(f"The parameters of {self!r} are out of range: quantiles are nan.")

    @property
    def _shape(self) -> tuple[int, ...]:
        # numbers (), or one per column (d)
        parameters = (*self.frozen.args, *self.frozen.kwds.values())
        return np.broadcast_shapes(*(np.shape(p) for p in parameters))

    @property
    def dim(self) -> int | None:
        return next(iter(self._shape), None)

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x + Q(u)
        deviations = np.asarray(self.frozen.ppf(base.double().cpu().numpy()), dtype=np.float64)
        return X.unsqueeze(-2) + torch.as_tensor(deviations).to(X)

    def _mean(self, X: Tensor) -> Tensor:
        # E x' = x + E δ
        return X + self._moment("mean", X)

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' = diag(Var δ_j)
        return torch.diag_embed(self._moment("var", X).expand(X.shape))

    def _moment(self, name: str, X: Tensor) -> Tensor:
        # E δ or Var δ, which need not exist
        value = getattr(self.frozen, name)()
        if not np.isfinite(value).all():
            raise ValueError(f"{self!r} has no finite {name}.")
        return torch.as_tensor(value).to(X)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = P(δ <= t - x) - P(δ = t - x)
        deviation = (t - X).detach().double().cpu().numpy()
        F = self.frozen.cdf(deviation)
        if isinstance(self.frozen.dist, scipy.stats.rv_discrete):
            F = F - self.frozen.pmf(deviation)
        return torch.as_tensor(F).to(X)

    def is_bounded(self, d: int) -> bool:
        return bool(np.isfinite(self.frozen.support()).all())

    def to_dict(self) -> dict[str, Any]:
        dist = self.frozen.dist
        if type(getattr(scipy.stats, dist.name, None)) is not type(dist):
            raise TypeError(
                f"The distribution in {self!r} cannot be saved: scipy.stats does not have it. "
                "Use Empirical with draws of it, or rebuild it in your code after loading."
            )
        return {"kind": "SciPy", **self._fields()}

    @classmethod
    def from_fields(
        cls, name: str, args: Sequence[Any] = (), kwds: Mapping[str, Any] | None = None
    ) -> "SciPy":
        """Rebuild from what ``to_dict`` gave."""
        dist = getattr(scipy.stats, str(name), None)
        if not isinstance(dist, _generic()):
            raise ValueError(f"scipy.stats has no univariate distribution named {name!r}.")
        named = {**{f"args[{i}]": a for i, a in enumerate(args)}, **(kwds or {})}
        for parameter, value in named.items():
            numbers(1)(value, parameter)
        return cls(dist(*args, **(kwds or {})))

    @property
    def _key(self) -> Hashable:
        """Return its description, or else what no other one has."""
        try:
            return self.to_json()
        except TypeError:
            return id(self.frozen)

    def words(self, show: Show) -> str:
        return said({"kind": "SciPy", **self._fields()}, show)

    def _fields(self) -> dict[str, Any]:
        args, kwds = _listed(self.frozen.args), _listed(self.frozen.kwds)
        return {"name": self.frozen.dist.name, "args": args, "kwds": kwds}

    def __reduce__(self) -> Any:
        """Pickle name and parameters: some distributions do not work any more after pickling."""
        try:
            return from_dict, (self.to_dict(),)
        except TypeError:
            return super().__reduce__()

    def __repr__(self) -> str:
        fields = self._fields()
        given = [*map(repr, fields["args"]), *(f"{k}={v!r}" for k, v in fields["kwds"].items())]
        return f"SciPy({fields['name']}({', '.join(given)}))"


def _generic() -> Any:
    return scipy.stats.rv_continuous, scipy.stats.rv_discrete


def _listed(values: Any) -> Any:
    """Return arguments as plain numbers and lists."""
    if isinstance(values, Mapping):
        return {name: _listed(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_listed(value) for value in values]
    return values.tolist() if isinstance(values, np.ndarray | np.generic) else values


@dataclass(frozen=True, eq=False, repr=False)
class Torch(InputUncertainty):
    """The deviation follows a distribution of ``torch.distributions``.

    Its quantile function ``icdf`` is used where there is one, and where not its sampler, seeded
    from the base draws. It cannot be saved; ``SciPy`` can, and has most of these.
    """

    distribution: torch.distributions.Distribution
    """Univariate with batch shape () or (d), or multivariate with event shape (d)."""

    is_additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, torch.distributions.Distribution):
            raise TypeError(f"Torch needs a torch distribution, got {self.distribution!r}.")
        if len(self._shape) > 1:
            raise ValueError(f"Torch must draw numbers or vectors, not arrays {self._shape}.")

    @property
    def _shape(self) -> tuple[int, ...]:
        return (*self.distribution.batch_shape, *self.distribution.event_shape)

    @property
    def dim(self) -> int | None:
        return next(iter(self._shape), None)

    @cached_property
    def independent_columns(self) -> bool:
        try:
            self.distribution.icdf(torch.tensor(0.5, dtype=torch.float64))
        except NotImplementedError:
            return False
        return True

    def n_base(self, d: int) -> int:
        """Return d, or 1 where the base draws are only a seed."""
        return d if self.independent_columns else 1

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # x' = x + Q(u), or x + a draw that the base draws seed
        if self.independent_columns:
            return X.unsqueeze(-2) + self.distribution.icdf(base).to(X)
        with torch.random.fork_rng():
            torch.manual_seed(seed_from(base))
            size = [len(base)] if self._shape else [len(base), X.shape[-1]]
            return X.unsqueeze(-2) + self.distribution.sample(torch.Size(size)).to(X)

    @property
    def _key(self) -> Hashable:
        return id(self.distribution)

    def words(self, show: Show) -> str:
        return "a distribution of another library"

    def to_dict(self) -> dict[str, Any]:
        raise TypeError(
            f"{self.distribution} cannot be saved. Use SciPy with the same distribution, or "
            "rebuild it in your code after loading."
        )
