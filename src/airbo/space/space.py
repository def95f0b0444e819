"""Named parameters, and the three ways in which a design is written.

* A *design* is what the user says: ``{"speed": 120.0, "depth": 0.5, "tool": "B"}``.
* Its *columns* are numbers in the user's units, one per parameter and in their order: a real or
  whole number as it is, a category as its position in the list, ``[120.0, 0.5, 1.0]``. P_x, bounds
  and executed inputs are given over columns. Many designs are a matrix (n, d).
* The *unit cube* is what models and searches see: every number runs from 0 to 1, on a log scale
  where the parameter says so, and a category takes one column per choice, 1/√2 at the choice and
  0 elsewhere, so that any two choices are as far apart as the ends of a number. Many designs are a
  matrix (n, m).

:class:`Space` checks designs and translates them to columns and back, in plain Python, so that a
program that only checks a design need not import PyTorch. :class:`airbo.space.cube.Cube` translates
columns to the unit cube and back, in tensors. :mod:`airbo.uncertainty.in_cube` does the same for
P_x: from names to columns, and from columns to the cube.

The optimizer translates a design once on its way in and the chosen one once on its way out.
Models that are used without it take columns and ``bounds``, which say where the cube lies.
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airbo.space.constraints import Constraint, read_constraints
from airbo.space.parameters import (
    Categorical,
    Environment,
    Float,
    Integer,
    Parameter,
    finite_number,
)

if TYPE_CHECKING:
    from airbo.space.polytope import Polytope

Design = dict[str, Any]
Columns = list[list[float]]


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """The parameters of a design, by name and in order.

    A tuple ``(low, high)`` is short for :class:`Float`, also where both numbers are integers (name
    :class:`Integer` for whole numbers); a list is short for :class:`Categorical`.

    >>> space = Space({"speed": (50, 200), "passes": Integer(1, 5), "tool": ["A", "B"]})
    >>> space.to_columns({"speed": 80, "passes": 2, "tool": "B"})
    [[80.0, 2.0, 1.0]]
    >>> space.to_designs([[80.0, 2.0, 1.0]])
    [{'speed': 80.0, 'passes': 2, 'tool': 'B'}]

    Constraints are linear equations and inequalities between parameters that are numbers. They bind
    designs; executed inputs may miss them, as they may miss the bounds.

    >>> mixture = {"water": (0.0, 1.0), "ethanol": (0.0, 0.5), "oil": (0.1, 1.0)}
    >>> space = Space(mixture, constraints=["water + ethanol + oil == 1", "ethanol <= 2 * water"])
    >>> space.check({"water": 0.1, "ethanol": 0.4, "oil": 0.5})
    Traceback (most recent call last):
    ValueError: The design misses the constraint 'ethanol <= 2 * water' by 0.2.

    An :class:`Environment` is no part of a design. ``names``, ``parameters`` and columns are of
    what designs set; ``whole`` has the columns of the environment, too, behind the others.
    """

    names: tuple[str, ...]
    """Names of the parameters, in the order of the columns."""
    constraints: tuple[str, ...]
    """What designs have to meet, as it was written."""

    _parameters: tuple[Parameter, ...]
    _environment: tuple[tuple[str, Environment], ...]

    def __init__(self, parameters: Mapping[str, Any], constraints: Iterable[str] = ()) -> None:
        if not isinstance(parameters, Mapping):
            raise ValueError(f"A space is made from a dict of parameters, got {parameters!r}.")
        if not parameters:
            raise ValueError("A space needs at least one parameter.")
        for name in parameters:
            if not (isinstance(name, str) and name):
                raise ValueError(f"Names of parameters must be non-empty strings, got {name!r}.")
        around = {n: p for n, p in parameters.items() if isinstance(p, Environment)}
        made = {n: _parameter(n, p) for n, p in parameters.items() if n not in around}
        if not made:
            raise ValueError("A space needs at least one parameter that can be set.")
        object.__setattr__(self, "names", tuple(made))
        object.__setattr__(self, "_parameters", tuple(made.values()))
        object.__setattr__(self, "_environment", tuple(around.items()))
        if isinstance(constraints, str | Mapping) or not isinstance(constraints, Iterable):
            raise ValueError(
                f'constraints is a list of texts, as in ["a + b <= 1"], got {constraints!r}.'
            )
        object.__setattr__(self, "constraints", tuple(constraints))
        self._check_constraints()

    def _check_constraints(self) -> None:
        """Refuse constraints that contradict each other, or the bounds."""
        limited = {c for limit in self.limits for c, w in enumerate(limit.weights) if w}
        alone = len(self.limits) == 1 and not limited & self.n_values.keys()
        if not self.limits or alone:  # one by one they were checked when they were read
            return
        texts = list(dict.fromkeys(constraint.text for constraint in self.polytope.conflict()))
        if len(texts) == 1:
            raise ValueError(f"Constraint {texts[0]!r}: no design between the bounds can meet it.")
        if texts:
            raise ValueError(
                f"No design between the bounds can meet these constraints together: {texts}."
            )

    def __repr__(self) -> str:
        constraints = f", constraints={list(self.constraints)}" if self.constraints else ""
        return f"Space({self.parameters | self.environment}{constraints})"

    def __len__(self) -> int:
        return len(self.names)

    @property
    def d(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(zip(self.names, self._parameters, strict=True))

    @property
    def environment(self) -> dict[str, Environment]:
        """What nobody sets, by name."""
        return dict(self._environment)

    @property
    def typical(self) -> list[float]:
        """The typical values of the environment, in its order."""
        return [float(around.typical or 0.0) for _, around in self._environment]

    @cached_property
    def whole(self) -> "Space":
        """The same with the environment as further parameters, as executed inputs have it."""
        if not self._environment:
            return self
        columns = {name: around.column for name, around in self._environment}
        return Space({**self.parameters, **columns}, self.constraints)

    def without(self, held: Mapping[str, Any]) -> "Space":
        """Return the space of the other parameters, with what constraints leave for them.

        Args:
            held: Parameters that have a value already, and that value.
        """
        if not held:
            return self
        fixed = {self.names.index(n): self.parameters[n].encode(v) for n, v in held.items()}
        kept = [c for c in range(self.d) if c not in fixed]
        if not kept:
            raise ValueError("Every parameter is given: nothing is left to choose.")
        free = Space({self.names[c]: self._parameters[c] for c in kept})
        # Σ_free w x <= b - Σ_held w x
        limits = []
        for limit in self.limits:
            bound = limit.bound - math.fsum(limit.weights[c] * x for c, x in fixed.items())
            rest = replace(limit, weights=tuple(limit.weights[c] for c in kept), bound=bound)
            if any(rest.weights):
                limits.append(rest)
            elif not rest.holds([0.0] * len(kept)):
                raise ValueError(f"No design with {dict(held)} meets the constraint {rest.text!r}.")
        object.__setattr__(free, "constraints", tuple(limit.text for limit in limits))
        object.__setattr__(free, "limits", tuple(limits))
        if limits and (texts := {limit.text for limit in free.polytope.conflict()}):
            raise ValueError(f"No design with {dict(held)} meets the constraints {sorted(texts)}.")
        return free

    def checked_given(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return values that are known beforehand, of parameters and of the environment."""
        if not isinstance(given, Mapping):
            raise TypeError(f"given: expected a dict of values by name, got {given!r}.")
        found = {}
        for name, value in given.items():
            parameter = self.whole.parameters.get(name)
            if parameter is None:
                raise ValueError(f"given: unknown parameter {name!r}{self.whole.hint(name)}")
            try:
                found[name] = parameter.decode(parameter.encode(value))
            except ValueError as error:
                raise ValueError(f"given: Parameter {name!r}: {error}") from None
        return found

    def to_dict(self) -> dict[str, Any]:
        """Describe the space in values that JSON can hold."""
        parameters = [
            {"name": name, "type": parameter.kind, **_jsonable(parameter)}
            for name, parameter in self.parameters.items()
        ]
        parameters += [
            {"name": name, "type": around.kind, **around.to_dict()}
            for name, around in self._environment
        ]
        constraints = {"constraints": list(self.constraints)} if self.constraints else {}
        return {"parameters": parameters, **constraints}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Space":
        """Make the space that :meth:`to_dict` described."""
        kinds: dict[str, Any] = {
            kind.kind: kind for kind in (Float, Integer, Categorical, Environment)
        }
        parameters: dict[str, Any] = {}
        for fields in data["parameters"]:
            arguments = dict(fields)
            name, kind = arguments.pop("name", None), arguments.pop("type", None)
            if kind not in kinds:
                raise ValueError(
                    f"Parameter {name!r}: type must be one of {list(kinds)}, got {kind!r}."
                )
            if name in parameters:
                raise ValueError(f"Parameter {name!r} is described twice.")
            try:
                parameters[name] = kinds[kind](**arguments)
            except (TypeError, ValueError) as error:
                raise ValueError(f"Parameter {name!r}: {error}") from error
        return cls(parameters, data.get("constraints", ()))

    # -- designs <-> columns

    def check(self, design: Mapping[str, Any], allow_outside: bool = False) -> None:
        """Raise a ``ValueError`` that names the parameter unless the design belongs to the space.

        Args:
            design: A value for every parameter.
            allow_outside: Whether numbers may lie outside the bounds and miss the constraints, as
                executed inputs do.
        """
        self._row(design, allow_outside)

    def checked(self, design: Mapping[str, Any], allow_outside: bool = False) -> Design:
        """Return the design with the parameters' own types, after checking it."""
        return self._design(self._row(design, allow_outside))

    def to_columns(self, designs: Iterable[Any], allow_outside: bool = False) -> Columns:
        """Translate designs into columns, after checking them.

        Args:
            designs: One dict, several dicts, or a pandas table with one column per parameter.
            allow_outside: Whether numbers may lie outside the bounds, as executed inputs do.
        """
        rows: Iterable[Any] = designs
        if isinstance(designs, Mapping):
            rows = [designs]
        elif hasattr(designs, "columns"):
            rows = designs.to_dict("records")  # type: ignore[attr-defined]
        return [self._row(row, allow_outside) for row in rows]

    def to_designs(self, columns: Iterable[Any]) -> list[Design]:
        """Translate columns, in lists or in an array (n x d), into designs."""
        rows = columns.tolist() if hasattr(columns, "tolist") else columns
        return [self._design(row) for row in rows]

    def distance(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
        """Return by how much two designs differ in the parameter where they differ most.

        The unit is the range of the parameter; different categories have the distance 1.
        """
        # max over parameters of |a - b| / range, on log scales |log a/b| / log(high/low)
        rows = zip(*self.to_columns([a, b], allow_outside=True), strict=True)
        return max(_distance(p, *pair) for p, pair in zip(self._parameters, rows, strict=True))

    def _row(self, design: Mapping[str, Any], allow_outside: bool) -> list[float]:
        if not isinstance(design, Mapping):
            raise ValueError(
                f"A design is a dict with the keys {list(self.names)}, got {design!r}."
            )
        for name in design:
            if name in self.environment:
                raise ValueError(
                    f"{name!r} is the environment, which no design sets. Tell what was measured of "
                    "it with executed=..., and use given=... for what is known beforehand."
                )
            if name not in self.names:
                raise ValueError(f"Unknown parameter {name!r}{self.hint(name)}")
        row, wrong = [], []
        for name, parameter in zip(self.names, self._parameters, strict=True):
            try:
                row.append(parameter.encode(design[name], allow_outside))
            except KeyError:
                wrong.append(f"Parameter {name!r} is missing.")
            except ValueError as error:
                wrong.append(f"Parameter {name!r}: {error}")
        if wrong:
            raise ValueError(" ".join(wrong))
        for limit in () if allow_outside else self.limits:
            if not limit.holds(row):
                missed = f"{limit.excess(row):.3g}"
                raise ValueError(f"The design misses the constraint {limit.text!r} by {missed}.")
        return row

    def meets(self, design: Mapping[str, Any]) -> bool:
        """Say whether a design, inside the bounds or not, meets all constraints."""
        return not self.limits or all(
            limit.holds(self._row(design, allow_outside=True)) for limit in self.limits
        )

    def mended(self, design: Mapping[str, Any], keep: Iterable[str] = ()) -> Design | None:
        """Return the nearest design that meets all constraints.

        Args:
            design: A value for every parameter.
            keep: Names of parameters whose values must stay.

        Returns:
            None if no design has these values and meets the constraints.
        """
        if self.meets(design):
            return self.checked(design, allow_outside=True)
        from numpy import array

        row = self._row(design, allow_outside=True)
        fixed = {column: row[column] for column in map(self.names.index, keep)}
        found = self.polytope.nearest(array(row), fixed)
        return None if found is None else self._design(found.tolist())

    def _design(self, row: Iterable[float]) -> Design:
        named = zip(self.names, self._parameters, row, strict=True)
        return {name: parameter.decode(number) for name, parameter, number in named}

    # -- what the columns hold

    @cached_property
    def limits(self) -> tuple[Constraint, ...]:
        """The constraints, as numbers over columns."""
        return read_constraints(self.constraints, self.parameters)

    @cached_property
    def polytope(self) -> "Polytope":
        """The designs that meet all constraints; it needs NumPy and SciPy."""
        from airbo.space.polytope import Polytope

        # (high - low) / (n - 1) between n values; None: there is a value between any two
        steps = tuple(
            None if p.n_values is None else (p.range[1] - p.range[0]) / (p.n_values - 1)
            for p in self._parameters
        )
        return Polytope(self.limits, *self.bounds, steps)

    @cached_property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Smallest and largest numbers of all columns."""
        low, high = zip(*(parameter.range for parameter in self._parameters), strict=True)
        return low, high

    @cached_property
    def log_columns(self) -> tuple[int, ...]:
        """Columns with a logarithmic scale."""
        return tuple(column for column, p in enumerate(self._parameters) if p.log)

    @cached_property
    def integer_columns(self) -> tuple[int, ...]:
        """Columns of integers."""
        return tuple(c for c, p in enumerate(self._parameters) if isinstance(p, Integer))

    @cached_property
    def categorical_columns(self) -> tuple[int, ...]:
        """Columns of categories."""
        return tuple(c for c, p in enumerate(self._parameters) if isinstance(p, Categorical))

    @cached_property
    def n_values(self) -> dict[int, int]:
        """Number of values of each column that has only some: integers, categories, grids."""
        counts = ((column, p.n_values) for column, p in enumerate(self._parameters))
        return {column: n for column, n in counts if n is not None}

    def hint(self, name: object) -> str:
        """Say which known name is near an unknown one, or which there are; this ends a sentence."""
        near = closest(str(name), self.names)
        return f"; did you mean {near!r}?" if near else f"; there are {list(self.names)}."


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that somebody may have meant, if there is one.

    >>> closest("sped", ["speed", "depth"]), closest("target", ["storage", "value"])
    ('speed', None)
    """
    by_lower = {name.lower(): name for name in known}
    lower = word.lower()
    begun = [name for name in by_lower if len(lower) > 2 and name.startswith(lower)]
    near = begun[:1] or difflib.get_close_matches(lower, by_lower, n=1, cutoff=0.75)
    return by_lower[near[0]] if near else None


def _parameter(name: str, given: Any) -> Parameter:
    if isinstance(given, Parameter):
        return given
    try:
        if isinstance(given, tuple) and len(given) == 2:
            low, high = given
            return Float(finite_number(low, "low"), finite_number(high, "high"))
        if isinstance(given, list):
            return Categorical(given)
    except ValueError as error:
        raise ValueError(f"Parameter {name!r}: {error}") from None
    raise ValueError(
        f"Parameter {name!r}: expected (low, high), a list of choices, Float, Integer, "
        f"Categorical or Environment, got {given!r}."
    )


def n_initial_for(d: int) -> int:
    """Return how many designs are spread over ``d`` parameters before the model chooses."""
    # two designs per parameter and two more, between 5 and 20
    return min(20, max(5, 2 * (d + 1)))


def _distance(parameter: Parameter, a: float, b: float) -> float:
    if isinstance(parameter, Categorical):
        return float(a != b)
    low, high = parameter.range
    if not parameter.log:
        return abs(a - b) / (high - low)
    if min(a, b) <= 0:  # has no logarithm: as far as can be from all that have one
        return 0.0 if a == b else math.inf
    return abs(math.log(a / b)) / math.log(high / low)


def _jsonable(parameter: Parameter) -> dict[str, Any]:
    fields = asdict(parameter)  # type: ignore[call-overload]
    return {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()}
