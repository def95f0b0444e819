r"""What every input uncertainty can do, and the base draws that samples are made from.

Notation:

    x, X   a design (d), and many of them (*batch n d), in the units of the user
    x'     the executed input, x' ~ P_x;  δ = x' - x is the deviation
    u      base draws (s r), uniform in (0, 1): sample i of every design is made from row i
    t      limits of one column (k), for P(x' < t)
    ω, W   a frequency (d), and many of them as columns (d m);  φ(ω) = E exp(i ω·δ)
    c      a factor of all deviations, in ``scaled(c)``

P_x is *additive* if δ does not depend on x. Then one row stands for all designs.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from airbo.uncertainty.gaussians import (
    N_FINE,
    PER_CELL,
    Mixture,
    Resolution,
    around,
    bisect,
    by_gauss_rules,
    compress,
    in_cells,
    in_strata,
    midpoints,
)
from airbo.uncertainty.kinds import KINDS, LENGTHS, Kind, Show, numbers

if TYPE_CHECKING:
    from airbo.uncertainty.composed import Clipped

_N_DRAWS = 4096
"""Draws from which a distribution function is counted."""
FINEST = Resolution(64)
"""For moments and characteristic functions, which are worked out once."""
_LONGEST_REPR = 120

Numbers: TypeAlias = Any
"""A parameter: a float or nested tuples of floats, which can be compared, hashed and saved; inside
``Varying`` a tensor with the leading dimensions (*batch n) of the designs. Users pass any array."""


def base_draws(
    n_samples: int,
    n_base: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Float[Tensor, "s r"]:
    """Draw uniform numbers strictly inside (0, 1): a scrambled Sobol sequence.

    The numbers depend on the arguments alone; global random states are neither read nor changed.
    """
    # scrambled Sobol points are multiples of 2⁻³⁰; half a cell is added, so that none is 0
    if n_samples < 1 or n_base < 0:
        raise ValueError(f"Need n_samples >= 1 and n_base >= 0, got {n_samples} and {n_base}.")
    if n_base == 0:
        return torch.zeros(n_samples, 0, dtype=dtype, device=device)
    engine = SobolEngine(n_base, scramble=True, seed=seed)
    u = engine.draw(n_samples, dtype=torch.float64) + 2.0**-SobolEngine.MAXBIT / 2
    return _inside(u.to(dtype=dtype, device=device))


def _inside(u: Tensor) -> Tensor:
    """Keep numbers strictly inside (0, 1), whatever rounding did to them."""
    half_eps = torch.finfo(u.dtype).eps / 2
    return u.clamp(half_eps, 1 - half_eps)


def seed_from(base: Float[Tensor, "s r"]) -> int:
    """Derive a 32-bit seed from base draws, for samplers that bring their own generator."""
    data = base.detach().double().cpu().contiguous().numpy().tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=4).digest(), "little")


@lru_cache(maxsize=256)
def _deviation_sums(u: "InputUncertainty", d: int, r: Resolution) -> tuple[Mixture, ...]:
    """Write x' - x, which is the same for all designs; a search predicts at hundreds of them."""
    with torch.inference_mode(False):  # what is kept must serve for gradients later
        wholes = u._gaussians(torch.zeros(1, d, dtype=torch.float64), r)
    return tuple(replace(whole, additive=True) for whole in wholes)


class InputUncertainty(ABC):
    r"""The distribution :math:`P_x` of the executed input x' when the design x is asked for.

    Kinds are frozen values that are checked when they are made. They implement ``is_additive`` and
    ``_perturb``, and ``n_base`` unless a sample takes one number per column. All else has a default
    that works by sampling. A kind says it in closed form where it can: ``_gaussians``, from which
    moments follow, ``_cdf``, ``_scaled``, ``on_columns``, ``has_bounds`` and ``words``.
    ``airbo.testing.check_uncertainty`` says whether a kind keeps the laws.
    """

    has_bounds: ClassVar[bool] = False
    """Whether executed inputs have bounds, whatever the number of columns."""

    _kind: ClassVar[Kind | None] = None
    """Its declaration; None for the classes of a program, and for those that hold functions."""

    def __init_subclass__(cls) -> None:
        """Find the declaration."""
        ours = cls.__module__.startswith("airbo.uncertainty.")
        cls._kind = KINDS.get(cls.__name__) if ours else None

    def __post_init__(self) -> None:
        """Check the fields as they are declared, and store numbers in tuples: frozen values."""
        if self._kind is not None:
            for name, value in self._kind.read_fields(self._values()).items():
                object.__setattr__(self, name, _in_tuples(value))
            _ = self.dim  # refuses vectors of different length

    @property
    def dim(self) -> int | None:
        """Number of columns it acts on; None: any number, all independent and alike."""
        return self._width

    @cached_property
    def _width(self) -> int | None:
        return None if self._kind is None else self._kind.width(self._values())

    def _get(self, name: str, X: Tensor) -> Tensor:
        """Return a parameter as a tensor like the designs, whose shape it fits."""
        assert self._kind is not None
        ndim = next(f.ndim for f in self._kind.fields if f.name == name)
        return per_design(getattr(self, name), X, name, ndim)

    def _values(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in _fields(self)}

    @property
    def is_additive(self) -> bool:
        """Whether x' = x + δ, with δ independent of x; by default, with constant parameters."""
        if self._kind is None:
            raise NotImplementedError(f"{type(self).__name__} must say whether it is_additive.")
        return not any(is_varying(getattr(self, f.name), f.ndim) for f in self._kind.fields)

    is_exact: ClassVar[bool] = False
    """Whether x' = x."""

    is_multiplicative: ClassVar[bool] = False
    """Whether x' = x ε, with ε > 0 independent of x: additive on a log scale."""

    @property
    def independent_columns(self) -> bool:
        """Whether the columns of x' given x are independent, column j made from base column j."""
        return False

    def n_base(self, d: int) -> int:
        """Return how many uniform numbers one sample of a design with ``d`` columns takes."""
        return d

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
        # x' = perturb(x, u) with r = n_base(d) numbers u for each sample
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
        # E x' of every block stands in its columns
        result = torch.empty_like(X)
        for own, mean in self._block_moments(X, InputUncertainty.mean, 0):
            result[..., own] = mean
        return result

    def _covariance(self, X: Tensor) -> Tensor:
        # Cov x' is block diagonal: blocks are independent
        result = X.new_zeros(*X.shape, X.shape[-1])
        for own, covariance in self._block_moments(X, InputUncertainty.covariance, 1):
            rows, columns = torch.meshgrid(torch.tensor(own), torch.tensor(own), indexing="ij")
            result[..., rows, columns] = covariance
        return result

    def _block_moments(
        self, X: Tensor, moment: Callable[["InputUncertainty", Tensor], Tensor], order: int
    ) -> Iterator[tuple[list[int], Tensor]]:
        """Yield a moment of every independent block; of a single one, that of its Gaussians."""
        blocks = self.independent_blocks(X.shape[-1])
        # of several blocks each knows its own; a single one has m̄ and C̄ of its sum of Gaussians
        if len(blocks) > 1:
            for block, own in blocks:
                yield list(own), moment(block, X[..., list(own)])
        else:
            for part in self._moment_sums(X):
                yield list(part.columns), part.moments()[order]

    def _moment_sums(self, X: Tensor) -> list[Mixture]:
        """Return the sums of Gaussians that moments are read off."""
        return self.landing(X, FINEST)

    def _cdf_samples(self, X: Tensor) -> Tensor:
        """Return samples that distribution functions are counted from."""
        return self.perturb(X, base_draws(_N_DRAWS, self.n_base(X.shape[-1])))

    # -- one column: its distribution function; all columns: their bounds

    def cdf(
        self, X: Float[Tensor, "*batch n 1"], t: Float[Tensor, "*limits k"]
    ) -> Float[Tensor, "*batch n k"]:
        """Return P(x' < t) for every design of one column, and every limit.

        It is exact where the kind has a distribution function, and counted from draws where not.
        """
        return self._cdf(X, t.expand(*X.shape[:-1], t.shape[-1]))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # P(x' < t) ≈ the share of samples below t, by bisection in the sorted samples
        samples = self._cdf_samples(X).squeeze(-1)  # (..., n, s)
        ordered = samples.detach().sort(dim=-1).values
        return torch.searchsorted(ordered, t.detach().contiguous()).to(X) / _N_DRAWS

    def is_bounded(self, d: int) -> bool:
        """Say whether the executed inputs of a design with ``d`` columns have bounds."""
        return self.has_bounds

    # -- parts and multiples

    def on_columns(self, columns: Sequence[int]) -> "InputUncertainty | None":
        """Return it over some of its columns, None unless it treats each column by itself."""
        return None

    def independent_blocks(self, d: int) -> "list[tuple[InputUncertainty, tuple[int, ...]]]":
        """Return the smallest independent blocks, each with the columns of the design it acts on.

        The columns of all blocks are those of the design; some blocks may be ``Exact``.
        """
        # columns that can be taken one by one are blocks of their own
        alone = [self.on_columns([c]) for c in range(d)] if d > 1 else []
        if not alone or None in alone:
            return [(self, tuple(range(d)))]
        return [(block, (c,)) for c, block in enumerate(alone) if block is not None]

    def uncertain_columns(self, d: int) -> list[int]:
        """Return the columns that are not hit exactly."""
        # every group is uncertain, so these are all
        return sorted(c for group in self.independent_groups(d) for c in group)

    def independent_groups(self, d: int) -> list[tuple[int, ...]]:
        """Return groups of columns that are not hit exactly; groups deviate independently."""
        groups: list[tuple[int, ...]] = []
        for block, own in self.independent_blocks(d):
            # a block whose columns are independent of each other is a group per column
            if not block.is_exact:
                groups += [(c,) for c in own] if block.independent_columns else [own]
        return sorted(groups)

    def scaled(self, factor: float | int) -> "InputUncertainty":
        """Return the uncertainty with every deviation x' - x times ``factor``.

        The kind stays what it is wherever it can say so. The limits of ``Clipped`` stay where they
        are, since a stop does not move when a machine gets more precise.

        >>> from airbo import uncertainty as unc
        >>> unc.Product([unc.Normal(2.0), unc.Beta(0.4, 0.2, scale=0.1)]).scaled(0.5)
        Product(blocks=(Normal(std=1.0), Beta(a=0.4, b=0.2, scale=0.05)))
        """
        return self._scaled(numbers(0, least=0.0)(factor, "factor"))

    def _scaled(self, factor: float) -> "InputUncertainty":
        # c δ: fields in the units of the input are multiplied by c, where a kind has any
        lengths = {n: v for n, v in self._values().items() if n in LENGTHS and v is not None}
        if self._kind is not None and lengths:
            this: Any = self
            scaled = {
                n: v * factor if isinstance(v, Tensor) else (np.asarray(v) * factor).tolist()
                for n, v in lengths.items()
            }
            return replace(this, **scaled)
        from airbo.uncertainty.composed import Scaled

        return Scaled(self, factor)

    # -- P_x as sums of Gaussians

    def gaussians(self, X: Float[Tensor, "*batch n d"], resolution: Resolution) -> list[Mixture]:
        """Write P_x as independent sums of weighted Gaussians whose columns partition ``range(d)``.

        Gaussians stay as they are. One-column distributions become the nodes of their own Gauss
        quadrature. Whatever else can be sampled is cut into cells, and each cell becomes the
        Gaussian with its mean and its covariance. An additive block has one row: the deviation's.
        """
        # P_x = Π_b P_b over independent blocks b, and every P_b is a sum over its own columns
        found: list[Mixture] = []
        for block, columns in self.independent_blocks(X.shape[-1]):
            own = X[..., list(columns)]
            if block.is_additive:
                parts = [p.to(X) for p in _deviation_sums(block, len(columns), resolution)]
            else:
                parts = block._gaussians(own, resolution)
            found += [replace(p, columns=tuple(columns[c] for c in p.columns)) for p in parts]
        return found

    def landing(self, X: Float[Tensor, "*batch n d"], resolution: Resolution) -> list[Mixture]:
        """Return the same sums around every design, also where the deviation is one for all."""
        return [part.around(X[..., list(part.columns)]) for part in self.gaussians(X, resolution)]

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        d = X.shape[-1]
        # dependent columns become cells; a column of its own becomes strata where its shape changes
        # with x, and otherwise one Gauss rule for all designs
        if not (self.independent_columns or (d == 1 and self.n_base(1) <= 1)):
            return [self._in_cells(X, r)]
        if not self.is_additive:
            return in_strata(self.perturb, X, r.fine_nodes)
        deviations = self.perturb(torch.zeros(1, d, dtype=torch.float64), midpoints(d))[0]
        return by_gauss_rules(X, deviations, r.fine_nodes)

    def _in_cells(self, X: Tensor, r: Resolution) -> Mixture:
        """Cut the base draws into cells and give each the moments of its samples."""
        # the samples of cell c become N(mean_c, cov_c), with the weight of the cell
        d = X.shape[-1]
        if self.is_additive:
            draws = base_draws(N_FINE, self.n_base(d), dtype=X.dtype, device=X.device)
            return around(X, *compress(self.perturb(X.new_zeros(1, d), draws)[0], r.cells))
        n = 2 ** math.ceil(math.log2(r.cells))
        draws = base_draws(PER_CELL * n, self.n_base(d), dtype=X.dtype, device=X.device)
        return in_cells(self.perturb(X, draws), bisect(draws, n))

    def characteristic(self, W: Float[Tensor, "*shape d m"]) -> Tensor:
        """Return E exp(i ω·δ) of an additive deviation δ for every column ω of W, (*shape 1 m)."""
        # φ(ω) = Π_b φ_b(ω_b) over independent blocks b, each a sum of Gaussians
        parts = self.gaussians(W.new_zeros(1, W.shape[-2]), FINEST)
        return math.prod(
            (part.characteristic(W[..., list(part.columns), :]) for part in parts),
            start=torch.ones_like(W[..., :1, :], dtype=torch.complex128),
        )

    def check_dim(self, d: int) -> None:
        """Refuse designs with a number of columns that this uncertainty cannot act on."""
        if self.dim is not None and d != self.dim:
            raise ValueError(
                f"{type(self).__name__} acts on designs with {self.dim} columns, got {d}."
            )

    def clipped(self, low: Numbers = None, high: Numbers = None) -> "Clipped":
        """Return this uncertainty with executed inputs clamped to [low, high]."""
        from airbo.uncertainty.composed import Clipped

        return Clipped(self, low, high)

    def to_dict(self) -> dict[str, Any]:
        """Return a description out of plain lists, numbers and strings; ``from_dict`` reads it."""
        kind = type(self).__name__
        values = self._values().items()
        return {"kind": kind} | {n: _plain(v, f"{kind}.{n}") for n, v in values if v is not None}

    def words(self, show: Show) -> str:
        """Say to a person what the deviation is like; ``show`` writes its numbers."""
        if self._kind is not None:
            return self._kind.say(self._values(), show)
        return f"as the class {type(self).__name__} says"

    def to_json(self) -> str:
        """Return the description as JSON; ``from_json`` reads it."""
        return json.dumps(self.to_dict())

    @cached_property
    def _key(self) -> Hashable:
        """What makes this uncertainty equal to another one."""
        return tuple(map(_frozen, self._values().values()))

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


def with_columns(u: Any, columns: Sequence[int], **others: Any) -> Any:
    """Choose from the parameters that have one number per column, also where these vary."""
    for f in _fields(u):
        value = getattr(u, f.name)
        if f.name in others:
            continue
        if isinstance(value, tuple):
            others[f.name] = tuple(value[c] for c in columns)
        elif isinstance(value, Tensor) and value.ndim and value.shape[-1] > 1:
            others[f.name] = value[..., list(columns)]
    return replace(u, **others)


def _fields(uncertainty: InputUncertainty) -> tuple[Any, ...]:
    return fields(uncertainty) if is_dataclass(uncertainty) else ()


def _in_tuples(value: Any) -> Any:
    return tuple(map(_in_tuples, value)) if isinstance(value, list) else value


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


# -- parameters


def as_tensor(p: Numbers) -> Tensor:
    """Return the parameter as a tensor, constants in double precision."""
    return p if isinstance(p, Tensor) else torch.tensor(p, dtype=torch.float64)


def is_varying(p: Numbers, max_ndim: int) -> bool:
    """Say whether the parameter has one value per design."""
    return isinstance(p, Tensor) and p.ndim > max_ndim


def per_design(p: Numbers, X: Tensor, name: str, max_ndim: int) -> Tensor:
    """Return the parameter with the dtype and device of the designs, and its shape checked.

    A varying parameter has the leading dimensions (*batch n) of ``X``; a constant has none.
    """
    # a constant (d) fits every design; a varying one is (*batch n d), a row for each
    value = as_tensor(p).to(X)
    if is_varying(p, max_ndim) and value.shape[: value.ndim - max_ndim] != X.shape[:-1]:
        raise ValueError(
            f"{name} has shape {tuple(value.shape)}, which does not fit designs of shape "
            f"{tuple(X.shape)}: the leading dimensions must be {tuple(X.shape[:-1])}."
        )
    return value


def beside_samples(p: Tensor) -> Tensor:
    """Return a parameter as it meets the samples of designs, (*batch n s d)."""
    # (*batch n d) becomes (*batch n 1 d); a constant (d) or () is the same for all of them
    return p.unsqueeze(-2) if p.ndim > 1 else p


def as_step(deviation: Tensor) -> Tensor:
    """Return the distribution function of the number 0."""
    # P(0 < t) is 1 for t > 0 and 0 elsewhere
    return (deviation > 0).to(deviation)


def normal_cdf(deviation: Tensor, std: Tensor) -> Tensor:
    """Return Φ(deviation / std), a step where the standard deviation is 0."""
    # the inner where keeps 0/0 out of gradients
    exact = std <= 0
    z = deviation / torch.where(exact, 1.0, std)
    return torch.where(exact, as_step(deviation), torch.special.ndtr(z))
