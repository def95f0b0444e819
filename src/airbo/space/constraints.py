"""Linear constraints between parameters, as a chemist writes them: ``"water + ethanol <= 1"``.

Names of parameters become ``_0_``, ``_1_``, ...; then Python's own grammar gives a tree, in which
numbers, names, ``+ - * /``, brackets and comparisons are known, and nothing else: nothing in a text
is ever run. Nothing here imports PyTorch or NumPy.
"""

import ast
import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airbo.space.parameters import Categorical, Parameter

SLACK = 1e-6
"""What single precision or a printed number may miss a constraint by, in ranges."""
_TOKEN = (
    r"(?P<quote>['\"`])(?P<quoted>.*?)(?P=quote)|{names}|(?P<word>[^\W\d]\w*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<sign><=|>=|==|≤|≥|=|<|>)|(?P<other>\S)"
)
_SIGNS = {"≤": "<=", "≥": ">=", "=": "=="}
_EXAMPLE = 'for example "water + ethanol <= 1"'


@dataclass(frozen=True)
class Constraint:
    """Σ weights · columns <= bound, or == bound, in the user's units."""

    text: str
    """What the user wrote."""
    weights: tuple[float, ...]
    """One per column; 0 where the constraint does not name the parameter."""
    bound: float
    is_equality: bool
    scale: float
    """Σ |weights| · ranges: how much the left side can vary."""

    def excess(self, row: Sequence[float]) -> float:
        """Return by how much a row of columns misses the constraint; not above 0 if it holds."""
        above = math.fsum(w * x for w, x in zip(self.weights, row, strict=True)) - self.bound
        return abs(above) if self.is_equality else above

    def holds(self, row: Sequence[float]) -> bool:
        """Say whether a row of columns meets the constraint, as far as printed numbers can."""
        return self.excess(row) <= SLACK * self.scale


def read_constraints(
    texts: Iterable[str], parameters: Mapping[str, Parameter]
) -> tuple[Constraint, ...]:
    """Read constraints, or say in a ``ValueError`` what is wrong with which."""
    found: list[Constraint] = []
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"A constraint is a text, {_EXAMPLE}, got {text!r}.")
        try:
            found += _read(text, parameters)
        except ValueError as error:
            raise ValueError(f"Constraint {text!r}: {error}") from None
        except (RecursionError, MemoryError):
            raise ValueError(f"Constraint {text[:40]!r}...: too many brackets or signs.") from None
    return tuple(found)


def _read(text: str, parameters: Mapping[str, Parameter]) -> list[Constraint]:
    try:
        tree = ast.parse(_in_python(text, parameters), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"it cannot be read ({error.msg}); write it, {_EXAMPLE}.") from None
    if not isinstance(tree, ast.Compare):
        raise ValueError(f"expected <=, >= or == between two sums, {_EXAMPLE}.")
    kinds = {type(op) for op in tree.ops}
    if len(tree.ops) > 2 or (len(tree.ops) == 2 and (len(kinds) > 1 or ast.Eq in kinds)):
        raise ValueError('expected one comparison, or a range such as "0.2 <= a + b <= 0.8".')
    sides = [_sum(side, list(parameters)) for side in (tree.left, *tree.comparators)]
    return [
        _constraint(text, parameters, op, _plus(a, b, -1.0))
        for op, a, b in zip(tree.ops, sides, sides[1:], strict=False)
    ]


def _constraint(
    text: str, parameters: Mapping[str, Parameter], op: ast.cmpop, difference: "_Sum"
) -> Constraint:
    """Write ``difference <op> 0`` with the numbers on the right and ``<=`` or ``==``."""
    # Σ w x + c <= 0 becomes Σ w x <= -c; of >= all signs change
    if isinstance(op, ast.GtE):
        difference = _times(difference, -1.0)
    weights = tuple(difference.get(name, 0.0) for name in parameters)
    if not any(weights):
        raise ValueError("it does not depend on any parameter.")
    ranges = [p.range for p in parameters.values()]
    scale = math.fsum(abs(w) * (high - low) for w, (low, high) in zip(weights, ranges, strict=True))
    bound = -difference.get("", 0.0)
    if not (math.isfinite(scale) and math.isfinite(bound)):
        raise ValueError("its numbers are too large.")
    constraint = Constraint(text, weights, bound + 0.0, isinstance(op, ast.Eq), scale)
    _check_possible(constraint, ranges, [n for n, w in zip(parameters, weights, strict=True) if w])
    return constraint


def _check_possible(
    constraint: Constraint, ranges: Sequence[tuple[float, float]], names: Sequence[str]
) -> None:
    """Refuse a constraint that no design between the bounds can meet."""
    # min and max of Σ w x over the box: every term at one of its ends
    pairs = list(zip(constraint.weights, ranges, strict=True))
    least = math.fsum(min(w * low, w * high) for w, (low, high) in pairs)
    most = math.fsum(max(w * low, w * high) for w, (low, high) in pairs)
    slack = SLACK * constraint.scale
    too_large = least > constraint.bound + slack
    too_small = constraint.is_equality and most < constraint.bound - slack
    if too_large or too_small:
        bounds = [
            f"{name} is between {low:g} and {high:g}"
            for name, (w, (low, high)) in zip(names, (p for p in pairs if p[0]), strict=True)
        ]
        missed = least - constraint.bound if too_large else constraint.bound - most
        raise ValueError(
            f"no design can meet it: {', '.join(bounds)}; the nearest misses it by {missed:.3g}."
        )


# -- reading

_Sum = dict[str, float]
"""Weights by the names of parameters; what is added to them has the name ""."""


def _plus(a: _Sum, b: _Sum, factor: float = 1.0) -> _Sum:
    # a + factor b, name by name
    return {name: a.get(name, 0.0) + factor * b.get(name, 0.0) for name in {**a, **b}}


def _times(a: _Sum, factor: float) -> _Sum:
    return {name: factor * weight for name, weight in a.items()}


def _names(a: _Sum) -> list[str]:
    return [name for name, weight in a.items() if name and weight]


def _sum(node: ast.expr, names: Sequence[str]) -> _Sum:
    """Return what a part of the tree adds up to."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return {"": float(number)}
        case ast.Name(id=name):
            return {names[int(name.strip("_"))]: 1.0}
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as op, operand=operand):
            return _times(_sum(operand, names), -1.0 if isinstance(op, ast.USub) else 1.0)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1.0 if isinstance(op, ast.Add) else -1.0
            return _plus(_sum(left, names), _sum(right, names), sign)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_sum(left, names), _sum(right, names))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _quotient(_sum(left, names), _sum(right, names))
    raise ValueError(f"it holds more than sums and products, {_EXAMPLE}.")


def _product(a: _Sum, b: _Sum) -> _Sum:
    if _names(a) and _names(b):
        raise ValueError(
            f"it multiplies {_names(a)[0]!r} and {_names(b)[0]!r}; a constraint must be linear: "
            "sums of parameters times numbers."
        )
    # (Σ w x + c) k = Σ k w x + k c, where one side is the number k
    return _times(b, a.get("", 0.0)) if not _names(a) else _times(a, b.get("", 0.0))


def _quotient(a: _Sum, b: _Sum) -> _Sum:
    if _names(b):
        raise ValueError(
            f"it divides by {_names(b)[0]!r}, which is not linear; multiply both sides by "
            'it: "a <= 2 * b" instead of "a / b <= 2".'
        )
    if not b.get("", 0.0):
        raise ValueError("it divides by 0.")
    return _times(a, 1 / b[""])


def _in_python(text: str, parameters: Mapping[str, Parameter]) -> str:
    """Write a constraint as Python does: ``2 flow rate ≤ 1`` is ``2 * _4_ <= 1``.

    The longest name counts, so that ``2-propanol`` is one name where there is such a parameter.
    Any name may stand in quotes.
    """
    # a name ends where its word does
    order = sorted(parameters, key=len, reverse=True)
    ends = [re.escape(n) + (r"(?!\w)" if re.match(r"\w", n[-1]) else "") for n in order]
    token = _TOKEN.format(names=f"(?P<name>{'|'.join(ends)})")
    written = re.sub(token, lambda found: _written(found, parameters), text)
    return re.sub(r"([\w.)])\s*(?=_\d+_|\()", r"\1 * ", written).strip()  # 2 a is 2 * a


def _written(found: re.Match[str], parameters: Mapping[str, Parameter]) -> str:
    kind, shown = found.lastgroup, found[0]
    if kind in ("quoted", "quote"):
        kind, shown = "name", found["quoted"]
    if kind == "sign":
        if shown in "<>":
            raise ValueError(
                f"write {shown}= instead of {shown}; designs on the limit are allowed."
            )
        return _SIGNS.get(shown, shown)
    if kind == "other" and shown not in "+-*/()":
        raise ValueError(f"did not expect {shown!r} there.")
    if kind not in ("name", "word"):
        return shown
    names = list(parameters)
    if shown not in names:
        near = difflib.get_close_matches(shown, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {sorted(names)}."
        raise ValueError(f"unknown parameter {shown!r}; {hint}")
    if isinstance(parameters[shown], Categorical):
        raise ValueError(f"{shown!r} is categorical; only numbers can be constrained.")
    return f" _{names.index(shown)}_ "
