"""Distributions from scipy.stats and torch.distributions."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # scipy.stats is imported when it is used: it takes half a second
import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.base import InputUncertainty, seed_from
from airbo.uncertainty.parameters import parameter

_PROBES = (0.25, 0.5, 0.75)
_N_DRAWS = 2**13
"""Draws that stand for a distribution without a quantile function, such as levy_stable."""


@dataclass(frozen=True, eq=False, repr=False)
class SciPy(InputUncertainty):
    """The deviation follows a frozen distribution of ``scipy.stats``.

    A univariate distribution hits every column independently, through its quantile function; with
    vector parameters, one entry per column. A multivariate one draws from a generator that is
    seeded from the base draws.
    """

    frozen: Any
    """The distribution with its parameters, such as ``scipy.stats.gamma(2, scale=0.1)``."""

    def __post_init__(self) -> None:
        """Refuse what is no frozen distribution, and parameters that are out of range."""
        kind = type(self.frozen).__name__
        if isinstance(self.frozen, _generic()):
            name = self.frozen.name
            raise TypeError(f"scipy.stats.{name} has no parameters yet: pass {name}(...).")
        if self._is_univariate:
            self._check_univariate()
        elif callable(getattr(self.frozen, "rvs", None)):
            self._check_multivariate()
        else:
            raise TypeError(f"SciPy needs a frozen scipy.stats distribution, got {kind}.")

    def _check_univariate(self) -> None:
        if len(self._shape) > 1:
            raise ValueError(
                f"Parameters must be numbers or vectors, got parameters of shape {self._shape}."
            )
        dist = self.frozen.dist
        if not (_has_own(dist, "_ppf") or _has_own(dist, "_rvs")):
            raise ValueError(
                f"scipy.stats.{dist.name} has neither a quantile function nor a sampler of its "
                "own, and SciPy needs minutes for its numbers. Draw from it once, and keep the "
                "draws in an Empirical."
            )
        with np.errstate(all="ignore"):
            quantiles = self._quantiles(np.reshape(_PROBES, (3, *(1 for _ in self._shape))))
        if not np.isfinite(quantiles).all():
            raise ValueError(f"The parameters of {self!r} are out of range: quantiles are nan.")

    def _check_multivariate(self) -> None:
        if len(self._shape) > 1:
            raise ValueError(
                f"The distribution must draw vectors, but it draws arrays of shape {self._shape}."
            )

    def _quantiles(self, u: np.ndarray) -> np.ndarray:
        """Return quantiles, from sorted draws where SciPy would search for each of them."""
        if self._sorted_draws is None:
            return np.asarray(self.frozen.ppf(u))
        n = len(self._sorted_draws)
        rows = np.minimum((u * n).astype(int), n - 1)
        if not self._shape:
            return np.asarray(self._sorted_draws[rows, 0])
        rows = np.broadcast_to(rows, (len(u), *self._shape))
        return np.asarray(np.take_along_axis(self._sorted_draws, rows, axis=0))

    @cached_property
    def _sorted_draws(self) -> np.ndarray | None:
        """Fixed draws (n d) of a distribution that has a sampler but no quantile function."""
        if _has_own(self.frozen.dist, "_ppf"):
            return None
        d = self.dim or 1
        drawn = self.frozen.rvs(size=(_N_DRAWS, d), random_state=0)
        return np.sort(np.asarray(drawn, dtype=np.float64), axis=0)

    @property
    def _is_univariate(self) -> bool:
        return isinstance(getattr(self.frozen, "dist", None), _generic())

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        if self._is_univariate:
            parameters = (*self.frozen.args, *self.frozen.kwds.values())
            return np.broadcast_shapes(*(np.shape(p) for p in parameters))
        return np.shape(self.frozen.rvs(size=2, random_state=0))[1:] or (1,)

    @property
    def dim(self) -> int | None:
        """Length of the vector parameters or of one draw; None for scalar parameters."""
        return next(iter(self._shape), None)

    @property
    def is_additive(self) -> bool:
        """True."""
        return True

    @property
    def independent_columns(self) -> bool:
        """True for univariate distributions."""
        return self._is_univariate

    def n_base(self, d: int) -> int:
        """Return d, or 1 for a multivariate distribution: its seed."""
        return d if self._is_univariate else 1

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        if self._is_univariate:
            drawn = self._quantiles(base.double().cpu().numpy())
        else:
            drawn = self.frozen.rvs(size=len(base), random_state=seed_from(base))
        deviations = torch.as_tensor(np.asarray(drawn, dtype=np.float64))
        return X.unsqueeze(-2) + deviations.reshape(len(base), X.shape[-1]).to(X)

    def _mean(self, X: Tensor) -> Tensor:
        mean = self._moment("mean", 1)
        return super()._mean(X) if mean is None else X + mean.to(X)

    def _covariance(self, X: Tensor) -> Tensor:
        if self._is_univariate:
            variance = self._moment("var", 1)
            assert variance is not None
            return torch.diag_embed(variance.to(X).expand(X.shape))
        cov = self._moment("cov", 2)
        return super()._covariance(X) if cov is None else cov.to(X).expand(*X.shape, X.shape[-1])

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        if not self._is_univariate or self._sorted_draws is not None:
            return super()._cdf(X, t)
        F = self.frozen.cdf((t - X).detach().double().cpu().numpy())
        if isinstance(self.frozen.dist, scipy.stats.rv_discrete):  # P(δ < t), not P(δ <= t)
            F = F - self.frozen.pmf((t - X).detach().double().cpu().numpy())
        return torch.as_tensor(F).to(X)

    def is_bounded(self, d: int) -> bool:
        """Say whether the support has two ends."""
        support = getattr(self.frozen, "support", None)
        return support is not None and bool(np.isfinite(support()).all())

    def _moment(self, name: str, ndim: int) -> Tensor | None:
        """Return a moment that SciPy knows in closed form, None if it does not."""
        value = getattr(self.frozen, name, None)
        value = value() if callable(value) else value
        if value is None:
            return None
        moment = torch.as_tensor(np.asarray(value, dtype=np.float64))
        if not torch.isfinite(moment).all():
            raise ValueError(f"{self!r} has no finite {name}.")
        return moment if self._is_univariate else moment.reshape(self._shape * ndim)

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
        if not self._is_univariate:
            return False
        dist = self.frozen.dist
        return type(getattr(scipy.stats, str(dist.name), None)) is type(dist)

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

    @property
    def _key(self) -> Hashable:
        return self.to_json() if self._is_public else id(self.frozen)

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


_SAME_PARAMETER = (("probs", "logits"), ("scale_tril", "covariance_matrix", "precision_matrix"))
"""Names of one thing in torch.distributions; the first is the one to save."""


@dataclass(frozen=True, eq=False, repr=False)
class Torch(InputUncertainty):
    """The deviation follows a distribution of ``torch.distributions``.

    The quantile function ``icdf`` is used where there is one. Otherwise ``sample`` is called with
    the global generator seeded from the base draws, and put back afterwards. Inside Varying,
    a distribution with ``icdf`` may have the batch shape (*batch n d) of the designs.
    """

    distribution: torch.distributions.Distribution
    """Univariate with batch shape () or (d), or multivariate with event shape (d)."""

    def __post_init__(self) -> None:
        """Refuse shapes that are not those of one deviation."""
        if not isinstance(self.distribution, torch.distributions.Distribution):
            raise TypeError(f"Torch needs a torch distribution, got {self.distribution!r}.")
        batch, event = self.distribution.batch_shape, self.distribution.event_shape
        if len(event) > 1 or (len(event) == 1 and len(batch)):
            raise ValueError(
                "The distribution must be univariate, or have one event dimension and no batch, "
                f"got batch shape {tuple(batch)} and event shape {tuple(event)}."
            )
        if len(batch) > 1 and not self._has_icdf:
            raise ValueError(
                f"{type(self.distribution).__name__} has no icdf, so its batch shape must be () or "
                f"(d,), got {tuple(batch)}."
            )

    @cached_property
    def _has_icdf(self) -> bool:
        if self.distribution.event_shape:
            return False
        try:
            self.distribution.icdf(torch.tensor(0.5, dtype=torch.float64))
        except NotImplementedError:
            return False
        return True

    @property
    def dim(self) -> int | None:
        """Length of the parameters or of one draw; None for scalar parameters."""
        shape = (*self.distribution.batch_shape, *self.distribution.event_shape)
        return shape[-1] if shape else None

    @property
    def is_additive(self) -> bool:
        """True for constant parameters."""
        return len(self.distribution.batch_shape) < 2

    @property
    def independent_columns(self) -> bool:
        """True for univariate distributions with ``icdf``."""
        return self._has_icdf

    def n_base(self, d: int) -> int:
        """Return d, or 1 for a distribution without ``icdf``: its seed."""
        return d if self._has_icdf else 1

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        return X.unsqueeze(-2) + (
            self._quantiles(X, base) if self._has_icdf else self._draw(X, base)
        )

    def _quantiles(self, X: Tensor, base: Tensor) -> Tensor:
        batch = self.distribution.batch_shape
        if len(batch) < 2:
            return self.distribution.icdf(base).to(X)
        if batch != X.shape:
            raise ValueError(
                f"The distribution has batch shape {tuple(batch)}, which does not fit designs "
                f"of shape {tuple(X.shape)}."
            )
        u = base.reshape(base.shape[0], *(1 for _ in batch[:-1]), base.shape[1])
        return self.distribution.icdf(u).movedim(0, -2).to(X)  # (s, ..., d) -> (..., s, d)

    def _draw(self, X: Tensor, base: Tensor) -> Tensor:
        n, d = base.shape[0], X.shape[-1]
        with torch.random.fork_rng():
            torch.manual_seed(seed_from(base))
            drawn = self.distribution.sample(torch.Size([n, d] if self.dim is None else [n]))
        return drawn.to(X)

    def _mean(self, X: Tensor) -> Tensor:
        mean = self._moment("mean")
        return super()._mean(X) if mean is None else X + mean.to(X)

    def _covariance(self, X: Tensor) -> Tensor:
        if self.distribution.event_shape:
            cov = self._moment("covariance_matrix")
            return (
                super()._covariance(X) if cov is None else cov.to(X).expand(*X.shape, X.shape[-1])
            )
        variance = self._moment("variance")
        if variance is None:
            return super()._covariance(X)
        return torch.diag_embed(variance.to(X).expand(X.shape))

    def _moment(self, name: str) -> Tensor | None:
        """Return a moment that PyTorch knows in closed form, None if it does not."""
        try:
            moment = getattr(self.distribution, name)
        except (NotImplementedError, AttributeError):
            return None
        if not torch.isfinite(moment).all():
            raise ValueError(f"{self!r} has no finite {name}.")
        return torch.as_tensor(moment)

    def _parameters(self) -> dict[str, Tensor]:
        names = list(self.distribution.arg_constraints)
        for same in _SAME_PARAMETER:
            present = [name for name in same if name in names]
            names = [name for name in names if name not in present[1:]]
        values = {name: getattr(self.distribution, name) for name in names}
        return {name: torch.as_tensor(v) for name, v in values.items()}

    @property
    def _is_public(self) -> bool:
        """Whether torch.distributions can rebuild it from its parameters."""
        public = getattr(torch.distributions, type(self.distribution).__name__, None)
        return public is type(self.distribution) and bool(self._parameters())

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters, if the distribution can be rebuilt from them."""
        name, parameters = type(self.distribution).__name__, self._parameters()
        if not (self._is_public and self.is_additive):
            raise TypeError(
                f"The distribution {name} cannot be saved: it is not made from constant parameters "
                "alone. Rebuild it in your code after loading."
            )
        dtype = str(next(iter(parameters.values())).dtype).removeprefix("torch.")
        plain = {n: p.detach().tolist() for n, p in parameters.items()}
        return {"kind": "Torch", "name": name, "parameters": plain, "dtype": dtype}

    @classmethod
    def from_fields(
        cls, name: str, parameters: Mapping[str, Any], dtype: str = "float64"
    ) -> "Torch":
        """Rebuild from what ``to_dict`` gave."""
        kind = getattr(torch.distributions, str(name), None)
        if not (isinstance(kind, type) and issubclass(kind, torch.distributions.Distribution)):
            raise ValueError(f"torch.distributions has no distribution named {name!r}.")
        precision = getattr(torch, str(dtype), None)
        if not isinstance(precision, torch.dtype):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        build: Any = kind
        return cls(build(**{n: torch.tensor(p, dtype=precision) for n, p in parameters.items()}))

    @property
    def _key(self) -> Hashable:
        if not self._is_public:
            return id(self.distribution)
        listed = [(name, repr(p.detach().tolist())) for name, p in self._parameters().items()]
        return type(self.distribution), tuple(listed)
