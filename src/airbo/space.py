"""Named parameters and their coordinates.

A design is written in three ways:

* as the user says it, ``{"speed": 120.0, "tool": "B"}``;
* in *numeric user units*, a row of numbers in the order of the parameters: integers as they are,
  a category as its position in the list;
* in *model coordinates*, where every parameter runs from 0 to 1, on a log scale if asked for.
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airbo.parameters import Categorical, Float, Integer, Parameter, finite_number

Design = dict[str, Any]


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """The parameters of a design, by name and in order.

    A tuple ``(low, high)`` is short for :class:`Float`, also where both numbers are integers (name
    :class:`Integer` for whole numbers); a list is short for :class:`Categorical`.

    >>> space = Space({"speed": (50, 200), "passes": Integer(1, 5), "tool": ["A", "B"]})
    >>> space.encode({"speed": 80, "passes": 2, "tool": "B"})
    tensor([[80.,  2.,  1.]], dtype=torch.float64)
    >>> space.to_model(space.encode({"speed": 80, "passes": 2, "tool": "B"}))
    tensor([[0.2000, 0.2500, 1.0000]], dtype=torch.float64)
    """

    names: tuple[str, ...]
    """Names of the parameters, in the order of the columns."""

    _parameters: tuple[Parameter, ...]

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        if not isinstance(parameters, Mapping):
            raise ValueError(f"A space is made from a dict of parameters, got {parameters!r}.")
        if not parameters:
            raise ValueError("A space needs at least one parameter.")
        for name in parameters:
            if not (isinstance(name, str) and name):
                raise ValueError(f"Names of parameters must be non-empty strings, got {name!r}.")
        object.__setattr__(self, "names", tuple(parameters))
        made = tuple(_parameter(name, given) for name, given in parameters.items())
        object.__setattr__(self, "_parameters", made)

    def __repr__(self) -> str:
        return f"Space({self.parameters})"

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

    def to_dict(self) -> dict[str, Any]:
        """Describe the space in values that JSON can hold."""
        return {
            "parameters": [
                {"name": name, "type": parameter.kind, **_jsonable(parameter)}
                for name, parameter in self.parameters.items()
            ]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Space":
        """Make the space that :meth:`to_dict` described."""
        kinds = {kind.kind: kind for kind in (Float, Integer, Categorical)}
        parameters = {}
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
        return cls(parameters)

    # -- designs <-> numeric user units

    def check(self, design: Mapping[str, Any], allow_outside: bool = False) -> None:
        """Raise a ``ValueError`` that names the parameter unless the design belongs to the space.

        Args:
            design: A value for every parameter.
            allow_outside: Whether numbers may lie outside the bounds, as executed inputs do.
        """
        self._numbers(design, allow_outside)

    def checked(self, design: Mapping[str, Any], allow_outside: bool = False) -> Design:
        """Return the design with the parameters' own types, after checking it."""
        row = self._numbers(design, allow_outside)
        named = zip(self.names, self._parameters, row, strict=True)
        return {name: parameter.decode(number) for name, parameter, number in named}

    def distance(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
        """Return by how much two designs differ in the parameter where they differ most.

        The unit is the range of the parameter; different categories have the distance 1.
        """
        rows = zip(*(self._numbers(design, True) for design in (a, b)), strict=True)
        return max(_distance(p, *pair) for p, pair in zip(self._parameters, rows, strict=True))

    def encode(self, designs: Any, allow_outside: bool = False) -> Any:
        """Translate designs into numeric user units, after checking them.

        Args:
            designs: One dict, several dicts, a table with one column per parameter, or an array
                (n x d, or d numbers for one design) that is in numeric user units already.
            allow_outside: Whether numbers may lie outside the bounds, as executed inputs do.
        """
        import torch

        rows: Iterable[Any] = designs
        if isinstance(designs, Mapping):
            rows = [designs]
        elif hasattr(designs, "columns"):
            rows = designs.to_dict("records")
        elif hasattr(designs, "ndim"):
            rows = map(self._named, self._two_dimensional(designs))
        table = [self._numbers(row, allow_outside) for row in rows]
        return torch.tensor(table, dtype=torch.float64).reshape(-1, self.d)

    def decode(self, X: Any) -> list[dict[str, Any]]:
        """Translate numeric user units into designs with the parameters' own types."""
        return [
            {
                name: parameter.decode(number)
                for (name, parameter), number in zip(self.parameters.items(), row, strict=True)
            }
            for row in X.tolist()
        ]

    # -- numeric user units <-> model coordinates

    @property
    def bounds(self) -> Any:
        """Smallest and largest values, in numeric user units."""
        import torch

        ranges = [parameter.range for parameter in self._parameters]
        return torch.tensor(ranges, dtype=torch.float64).T.contiguous()

    @property
    def model_bounds(self) -> Any:
        """Zeros and ones: the bounds in model coordinates."""
        import torch

        return torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, self.d)

    def to_model(self, X: Any) -> Any:
        """Scale numeric user units to model coordinates; what is out of bounds leaves [0, 1]."""
        for column in self.log_columns:
            if (X[..., column] <= 0).any():
                worst = X[..., column].min().item()
                raise ValueError(
                    f"Parameter {self.names[column]!r} is logarithmic and must be > 0, got {worst}."
                )
        low, high = self._scale(self.bounds.to(X))
        return (self._scale(X) - low) / (high - low)

    def from_model(self, Z: Any) -> Any:
        """Scale model coordinates to numeric user units: the inverse of :meth:`to_model`."""
        import torch

        low, high = self._scale(self.bounds.to(Z))
        scaled = low + Z * (high - low)
        log = self._is_log(Z)
        return torch.where(log, torch.where(log, scaled, 0.0).exp(), scaled)

    def round(self, Z: Any) -> Any:
        """Move model coordinates to the nearest ones that a design can have."""
        import torch

        Z = Z.clamp(0.0, 1.0)
        even = [column for column in self.n_values if column not in self.log_columns]
        steps = torch.tensor([self.n_values[column] - 1 for column in even]).to(Z)
        rounded = Z.clone()
        rounded[..., even] = (Z[..., even] * steps).round() / steps
        uneven = [column for column in self.n_values if column in self.log_columns]
        if uneven:
            X = self.from_model(Z)
            X[..., uneven] = X[..., uneven].round()
            rounded[..., uneven] = self.to_model(X)[..., uneven]
        return rounded

    @property
    def log_columns(self) -> list[int]:
        """Columns with a logarithmic scale."""
        return [column for column, parameter in enumerate(self._parameters) if parameter.log]

    @property
    def integer_columns(self) -> list[int]:
        """Columns of integers."""
        return self._columns(Integer)

    @property
    def categorical_columns(self) -> list[int]:
        """Columns of categories."""
        return self._columns(Categorical)

    @property
    def n_values(self) -> dict[int, int]:
        """Number of values of each column that has only some: integers, categories, grids."""
        counts = ((column, p.n_values) for column, p in enumerate(self._parameters))
        return {column: n for column, n in counts if n is not None}

    def values(self, column: int) -> list[float]:
        """Return all model coordinates of a column that has only some."""
        n = self.n_values[column]
        if not self._parameters[column].log:
            return [k / (n - 1) for k in range(n)]
        low, high = self._parameters[column].range
        return [math.log(v / low) / math.log(high / low) for v in range(int(low), int(high) + 1)]

    def _columns(self, kind: type[Parameter]) -> list[int]:
        return [column for column, p in enumerate(self._parameters) if isinstance(p, kind)]

    def _is_log(self, like: Any) -> Any:
        import torch

        return torch.tensor([parameter.log for parameter in self._parameters], device=like.device)

    def _scale(self, X: Any) -> Any:
        import torch

        # the inner where keeps the gradient of the other columns free of log(negative) = nan
        log = self._is_log(X)
        return torch.where(log, torch.where(log, X, 1.0).log(), X)

    def _numbers(self, design: Mapping[str, Any], allow_outside: bool) -> list[float]:
        if not isinstance(design, Mapping):
            raise ValueError(
                f"A design is a dict with the keys {list(self.names)}, got {design!r}."
            )
        for name in design:
            if name not in self.names:
                raise ValueError(f"Unknown parameter {name!r}{self.hint(name)}.")
        row = []
        for name, parameter in self.parameters.items():
            if name not in design:
                raise ValueError(f"Parameter {name!r} is missing.")
            try:
                row.append(parameter.encode(design[name], allow_outside))
            except ValueError as error:
                raise ValueError(f"Parameter {name!r}: {error}") from None
        return row

    def hint(self, name: object) -> str:
        """Say which known name is near an unknown one."""
        near = difflib.get_close_matches(str(name), self.names, n=1)
        return f"; did you mean {near[0]!r}?" if near else f"; there are {list(self.names)}"

    def _two_dimensional(self, array: Any) -> list[list[float]]:
        rows = array[None] if array.ndim == 1 else array
        if rows.ndim != 2 or rows.shape[1] != self.d:
            shape = tuple(array.shape)
            raise ValueError(f"An array of designs has the shape (n, {self.d}), got {shape}.")
        return rows.tolist()

    def _named(self, row: list[float]) -> dict[str, Any]:
        """Name the numbers of a row, with categories in place of their positions."""
        design: dict[str, Any] = {}
        for (name, parameter), number in zip(self.parameters.items(), row, strict=True):
            design[name] = number
            if isinstance(parameter, Categorical):
                last = len(parameter.choices) - 1
                if number not in range(last + 1):
                    raise ValueError(
                        f"Parameter {name!r}: expected the position of a choice, 0 to {last}, "
                        f"got {number}."
                    )
                design[name] = parameter.choices[int(number)]
        return design


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
        f"Parameter {name!r}: expected (low, high), a list of choices, Float, Integer or "
        f"Categorical, got {given!r}."
    )


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
