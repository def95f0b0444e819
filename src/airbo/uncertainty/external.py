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
from airbo.uncertainty.kinds import Show, from_dict, numbers, said


class External(InputUncertainty):
    """A distribution of another library."""

    is_additive: ClassVar[bool] = True

    @property
    @abstractmethod
    def _shape(self) -> tuple[int, ...]:
        """Shape of one draw: () for one number, which then stands for every column."""

    @property
    @abstractmethod
    def independent_columns(self) -> bool:
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

    def n_base(self, d: int) -> int:
        """Return d, or 1 where the base draws are only a seed."""
        return d if self.independent_columns else 1

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        # x' = x + Q(u), or x + a draw that the base draws only seed
        if self.independent_columns:
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
        """Return its description, or else what no other one has."""
        try:
            return self.to_json()
        except TypeError:
            return id(next(iter(vars(self).values())))

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
    vector parameters, one entry per column. A multivariate one, and one without a quantile function
    of its own (such as ``levy_stable``, for which SciPy would search 70 s), draws from a generator
    that is seeded from the base draws.
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
        if self._is_univariate:
            self._check_parameters()

    def _check_parameters(self) -> None:
        dist = self.frozen.dist
        if not (self.independent_columns or _has_own(dist, "_rvs")):
            raise ValueError(
                f"scipy.stats.{dist.name} has neither a quantile function nor a sampler of its "
                "own, and SciPy needs minutes for its numbers. Draw from it once, and keep the "
                "draws in an Empirical."
            )
        with np.errstate(all="ignore"):
            middle = self.frozen.median() if self.independent_columns else 0.0
        if not np.isfinite(middle).all():
            raise ValueError(f"The parameters of {self!r} are out of range: quantiles are nan.")

    @property
    def _is_univariate(self) -> bool:
        return isinstance(getattr(self.frozen, "dist", None), _generic())

    @cached_property
    def independent_columns(self) -> bool:
        """True for univariate distributions with a quantile function of their own."""
        return self._is_univariate and _has_own(self.frozen.dist, "_ppf")

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        if self._is_univariate:
            parameters = (*self.frozen.args, *self.frozen.kwds.values())
            return np.broadcast_shapes(*(np.shape(p) for p in parameters))
        return np.shape(self.frozen.rvs(size=2, random_state=0))[1:] or (1,)

    def _quantiles(self, u: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
        found = self.frozen.ppf(u.double().cpu().numpy())
        return torch.as_tensor(np.asarray(found, dtype=np.float64))

    def _draw(self, n: int, d: int, seed: int) -> Float[Tensor, "n d"]:
        size = (n, d) if self._is_univariate else n
        drawn = np.asarray(self.frozen.rvs(size=size, random_state=seed), dtype=np.float64)
        return torch.as_tensor(drawn.reshape(n, d))

    def _moment(self, order: int) -> Tensor | None:
        # SciPy gives variances of univariate and covariances of multivariate distributions
        name = "mean" if order == 1 else "var" if self._is_univariate else "cov"
        value = getattr(self.frozen, name, None)
        value = value() if callable(value) else value
        if value is None:
            return None
        moment = torch.as_tensor(np.asarray(value, dtype=np.float64))
        return moment if self._is_univariate else moment.reshape(self._shape * order)

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) = F(t - x)
        if not self.independent_columns:
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
        dist: Any = getattr(self.frozen, "dist", None)
        public = self._is_univariate and type(getattr(scipy.stats, dist.name, None)) is type(dist)
        if not public:
            raise TypeError(
                f"The distribution in {self!r} cannot be saved: only the univariate ones of "
                "scipy.stats can. Use Normal(cov=...), GaussianMixture or Empirical, "
                "or rebuild it in your code after loading."
            )
        args, kwds = _listed(self.frozen.args), _listed(self.frozen.kwds)
        return {"kind": "SciPy", "name": dist.name, "args": args, "kwds": kwds}

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

    def __reduce__(self) -> Any:
        """Pickle name and parameters: some distributions do not work any more after pickling."""
        try:
            return from_dict, (self.to_dict(),)
        except TypeError:
            return super().__reduce__()

    def __repr__(self) -> str:
        """Show the distribution as it was made."""
        if not self._is_univariate:
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

    Its quantile function ``icdf`` is used where there is one, and its sampler where not. It cannot
    be saved: ``SciPy`` has most of these distributions, and can.
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
    def independent_columns(self) -> bool:
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
        """Refuse: it holds an object of PyTorch."""
        raise TypeError(
            f"{self.distribution} cannot be saved. Use SciPy with the same distribution, or "
            "rebuild it in your code after loading."
        )
