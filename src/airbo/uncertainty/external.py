"""Distributions of other libraries: scipy.stats and torch.distributions.

Notation: u base draws (s d); Q a quantile function, so that δ = Q(u) is the deviation. What has no
quantile function is drawn by the library's own sampler, seeded from the base draws.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # scipy.stats is imported when it is used: it takes half a second
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty, seed_from
from airbo.uncertainty.kinds import Show, from_dict, said
from airbo.uncertainty.parameters import parameter

_N_DRAWS = 2**13
"""Draws that stand for a SciPy distribution without a quantile function, such as levy_stable."""


class External(InputUncertainty):
    """A distribution of another library."""

    is_additive: ClassVar[bool] = True

    @property
    @abstractmethod
    def _shape(self) -> tuple[int, ...]:
        """Shape of one draw: () for one number, which then stands for every column."""

    @property
    @abstractmethod
    def has_quantiles(self) -> bool:
        """Whether there is a quantile function: every column is independent of the others."""

    @abstractmethod
    def _quantiles(self, u: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
        """Return Q(u), column by column."""

    @abstractmethod
    def _draw(self, n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
        """Draw deviations with the library's own sampler."""

    @abstractmethod
    def _moment(self, order: int) -> Tensor | None:
        """Return the mean (1), or variances or the covariance matrix (2); None: not known."""

    def _check_shape(self) -> None:
        if len(self._shape) > 1:
            raise ValueError(
                "Parameters must be numbers or vectors, and a multivariate distribution must draw "
                f"vectors, got arrays of shape {self._shape}."
            )

    @property
    def dim(self) -> int | None:
        """Length of one draw; None for one number."""
        return next(iter(self._shape), None)

    @property
    def independent_columns(self) -> bool:
        """Whether there is a quantile function."""
        return self.has_quantiles

    def n_base(self, d: int) -> int:
        """Return d, or 1 where the base draws are only a seed."""
        return d if self.has_quantiles else 1

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        # x' = x + Q(u), or x + a draw that the base draws only seed
        if self.has_quantiles:
            return X.unsqueeze(-2) + self._quantiles(base).to(X)
        return X.unsqueeze(-2) + self._draw(len(base), X.shape[-1], seed_from(base)).to(X)

    def _mean(self, X: Tensor) -> Tensor:
        mean = self._finite_moment(1)
        return super()._mean(X) if mean is None else X + mean.to(X)

    def _covariance(self, X: Tensor) -> Tensor:
        moment = self._finite_moment(2)
        if moment is None:
            return super()._covariance(X)
        if moment.ndim == 2:
            return moment.to(X).expand(*X.shape, X.shape[-1])
        return torch.diag_embed(moment.to(X).expand(X.shape))

    def _finite_moment(self, order: int) -> Tensor | None:
        moment = self._moment(order)
        if moment is not None and not torch.isfinite(moment).all():
            raise ValueError(f"{self!r} has no finite {'mean' if order == 1 else 'variance'}.")
        return moment

    @property
    def _key(self) -> Hashable:
        try:
            return self.to_json()
        except TypeError:  # no two of them are known to be equal
            return id(vars(self)[next(iter(vars(self)))])

    def __reduce__(self) -> Any:
        """Pickle name and parameters: some distributions do not work any more after pickling."""
        try:
            return from_dict, (self.to_dict(),)
        except TypeError:
            return super().__reduce__()

    def words(self, show: Show) -> str:
        """Say its name, if it can be saved."""
        try:
            return said(self.to_dict(), show)
        except TypeError:
            return "a distribution of another library"


@dataclass(frozen=True, eq=False, repr=False)
class SciPy(External):
    """The deviation follows a frozen distribution of ``scipy.stats``.

    A univariate distribution hits every column independently, through its quantile function; with
    vector parameters, one entry per column. A multivariate one draws from a generator that is
    seeded from the base draws.
    """

    frozen: Any
    """The distribution with its parameters, such as ``scipy.stats.gamma(2, scale=0.1)``."""

    def __post_init__(self) -> None:
        """Refuse what is no frozen distribution, and parameters that are out of range."""
        if isinstance(self.frozen, _generic()):
            name = self.frozen.name
            raise TypeError(f"scipy.stats.{name} has no parameters yet: pass {name}(...).")
        if not callable(getattr(self.frozen, "rvs", None)):
            kind = type(self.frozen).__name__
            raise TypeError(f"SciPy needs a frozen scipy.stats distribution, got {kind}.")
        self._check_shape()
        if self.has_quantiles:
            self._check_quantiles()

    def _check_quantiles(self) -> None:
        dist = self.frozen.dist
        if not (_has_own(dist, "_ppf") or _has_own(dist, "_rvs")):
            raise ValueError(
                f"scipy.stats.{dist.name} has neither a quantile function nor a sampler of its "
                "own, and SciPy needs minutes for its numbers. Draw from it once, and keep the "
                "draws in an Empirical."
            )
        with np.errstate(all="ignore"):
            levels = torch.tensor([[0.25], [0.5], [0.75]], dtype=torch.float64)
            probes = self._quantiles(levels.expand(3, self.dim or 1))
        if not torch.isfinite(probes).all():
            raise ValueError(f"The parameters of {self!r} are out of range: quantiles are nan.")

    @property
    def has_quantiles(self) -> bool:
        """True for univariate distributions."""
        return isinstance(getattr(self.frozen, "dist", None), _generic())

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        if self.has_quantiles:
            parameters = (*self.frozen.args, *self.frozen.kwds.values())
            return np.broadcast_shapes(*(np.shape(p) for p in parameters))
        return np.shape(self.frozen.rvs(size=2, random_state=0))[1:] or (1,)

    def _quantiles(self, u: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
        levels = u.double().cpu().numpy()
        if self._sorted_draws is None:
            return torch.as_tensor(np.asarray(self.frozen.ppf(levels), dtype=np.float64))
        # the ⌈u n⌉-th smallest of n draws, column by column
        n, d = self._sorted_draws.shape
        rows = np.minimum((levels * n).astype(int), n - 1)
        columns = np.broadcast_to(np.arange(rows.shape[-1]) if d > 1 else 0, rows.shape)
        return torch.as_tensor(self._sorted_draws[rows, columns])

    @cached_property
    def _sorted_draws(self) -> np.ndarray | None:
        """Fixed draws (n d) where SciPy would search for each quantile: 70 s for levy_stable."""
        if _has_own(self.frozen.dist, "_ppf"):
            return None
        drawn = self.frozen.rvs(size=(_N_DRAWS, self.dim or 1), random_state=0)
        return np.sort(np.asarray(drawn, dtype=np.float64), axis=0)

    def _draw(self, n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
        drawn = np.asarray(self.frozen.rvs(size=n, random_state=seed), dtype=np.float64)
        return torch.as_tensor(drawn.reshape(n, d))

    def _moment(self, order: int) -> Tensor | None:
        # SciPy gives variances of univariate and covariances of multivariate distributions
        name = "mean" if order == 1 else "var" if self.has_quantiles else "cov"
        value = getattr(self.frozen, name, None)
        value = value() if callable(value) else value
        if value is None:
            return None
        moment = torch.as_tensor(np.asarray(value, dtype=np.float64))
        return moment if self.has_quantiles else moment.reshape(self._shape * order)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = F(t - x)
        if not self.has_quantiles or self._sorted_draws is not None:
            return super()._cdf(X, t)
        deviation = (t - X).detach().double().cpu().numpy()
        F = self.frozen.cdf(deviation)
        if isinstance(self.frozen.dist, scipy.stats.rv_discrete):  # P(δ < t), not P(δ <= t)
            F = F - self.frozen.pmf(deviation)
        return torch.as_tensor(F).to(X)

    def is_bounded(self, d: int) -> bool:
        """Say whether the support has two ends."""
        support = getattr(self.frozen, "support", None)
        return support is not None and bool(np.isfinite(support()).all())

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters of a univariate distribution of ``scipy.stats``."""
        if not self._is_public:
            raise TypeError(
                f"The distribution in {self!r} cannot be saved: only the univariate ones of "
                "scipy.stats can. Use Normal(cov=...), GaussianMixture or Empirical, "
                "or rebuild it in your code after loading."
            )
        args, kwds = _listed(self.frozen.args), _listed(self.frozen.kwds)
        return {"kind": "SciPy", "name": self.frozen.dist.name, "args": args, "kwds": kwds}

    @property
    def _is_public(self) -> bool:
        """Whether scipy.stats has a univariate distribution of this name and kind."""
        dist: Any = getattr(self.frozen, "dist", None)
        return self.has_quantiles and type(getattr(scipy.stats, str(dist.name), None)) is type(dist)

    @classmethod
    def from_fields(
        cls, name: str, args: Sequence[Any] = (), kwds: Mapping[str, Any] | None = None
    ) -> "SciPy":
        """Rebuild from what ``to_dict`` gave."""
        dist = getattr(scipy.stats, str(name), None)
        if not isinstance(dist, _generic()):
            raise ValueError(f"scipy.stats has no univariate distribution named {name!r}.")
        named = {**{f"args[{i}]": a for i, a in enumerate(args)}, **(kwds or {})}
        for parameter_name, value in named.items():
            parameter(value, parameter_name, 1)
        return cls(dist(*args, **(kwds or {})))

    def __repr__(self) -> str:
        """Show the distribution as it was made."""
        if not self.has_quantiles:
            return f"SciPy({type(self.frozen).__name__})"
        args = [repr(a) for a in _listed(self.frozen.args)]
        kwds = [f"{k}={v!r}" for k, v in _listed(self.frozen.kwds).items()]
        return f"SciPy({self.frozen.dist.name}({', '.join(args + kwds)}))"


def _has_own(dist: Any, method: str) -> bool:
    """Say whether a distribution works something out itself, without search or integration."""
    if isinstance(dist, scipy.stats.rv_discrete):
        return True
    return getattr(type(dist), method) is not getattr(scipy.stats.rv_continuous, method)


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
class Torch(External):
    """The deviation follows a distribution of ``torch.distributions``.

    Its quantile function ``icdf`` is used where there is one, and its sampler where not.
    """

    distribution: torch.distributions.Distribution
    """Univariate with batch shape () or (d), or multivariate with event shape (d)."""

    def __post_init__(self) -> None:
        """Refuse shapes that are not those of one deviation."""
        if not isinstance(self.distribution, torch.distributions.Distribution):
            raise TypeError(f"Torch needs a torch distribution, got {self.distribution!r}.")
        self._check_shape()

    @property
    def _shape(self) -> tuple[int, ...]:
        return (*self.distribution.batch_shape, *self.distribution.event_shape)

    @cached_property
    def has_quantiles(self) -> bool:
        """Whether there is an ``icdf``."""
        try:
            self.distribution.icdf(torch.tensor(0.5, dtype=torch.float64))
        except NotImplementedError:
            return False
        return True

    def _quantiles(self, u: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
        return self.distribution.icdf(u)

    def _draw(self, n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.distribution.sample(torch.Size([n] if self._shape else [n, d]))

    def _moment(self, order: int) -> Tensor | None:
        second = "covariance_matrix" if self.distribution.event_shape else "variance"
        try:
            return torch.as_tensor(getattr(self.distribution, "mean" if order == 1 else second))
        except (NotImplementedError, AttributeError):
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters, as the class in ``torch.distributions`` takes them."""
        made, again = type(self.distribution), ("logits", "covariance_matrix", "precision_matrix")
        names = [n for n in self.distribution.arg_constraints if n not in again]
        if not names or getattr(torch.distributions, made.__name__, None) is not made:
            raise TypeError(f"{made.__name__} cannot be saved: it is not made from parameters.")
        values = {n: torch.as_tensor(getattr(self.distribution, n)) for n in names}
        plain = {n: value.tolist() for n, value in values.items()}
        dtype = str(values[names[0]].dtype).removeprefix("torch.")
        return {"kind": "Torch", "name": made.__name__, "parameters": plain, "dtype": dtype}

    @classmethod
    def from_fields(
        cls, name: str, parameters: Mapping[str, Any], dtype: str = "float64"
    ) -> "Torch":
        """Rebuild from what ``to_dict`` gave."""
        made = getattr(torch.distributions, str(name), None)
        if not (isinstance(made, type) and issubclass(made, torch.distributions.Distribution)):
            raise ValueError(f"torch.distributions has no distribution named {name!r}.")
        precision = {"float32": torch.float32, "float64": torch.float64}.get(dtype)
        if precision is None:
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        build: Any = made  # every distribution has parameters of its own
        return cls(build(**{n: torch.tensor(p, dtype=precision) for n, p in parameters.items()}))
