"""Linear constraints between parameters, as a chemist writes them: ``"water + ethanol <= 1"``.

A text is read by a small parser that knows numbers, names of parameters, ``+ - * /``, brackets and
comparisons, and nothing else: nothing in it is ever run. Nothing here imports PyTorch or NumPy.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airbo.space.parameters import Categorical, Parameter

SLACK = 1e-6
"""What single precision or a printed number may miss a constraint by, in ranges."""
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[^\W\d]\w*")
_COMPARISONS = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">=", "==": "==", "=": "=="}
_SYMBOLS = (*_COMPARISONS, "<", ">", "!", "+", "-", "*", "/", "(", ")")
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
        except RecursionError:
            raise ValueError(f"Constraint {text[:40]!r}...: too many brackets or signs.") from None
    return tuple(found)


def _read(text: str, parameters: Mapping[str, Parameter]) -> list[Constraint]:
    sides, signs = _Reader(text, parameters).comparison()
    pairs = zip(signs, sides, sides[1:], strict=False)
    return [_constraint(text, parameters, sign, a.minus(b)) for sign, a, b in pairs]


def _constraint(
    text: str, parameters: Mapping[str, Parameter], sign: str, difference: "_Sum"
) -> Constraint:
    """Write ``difference <sign> 0`` with the numbers on the right and ``<=`` or ``==``."""
    if sign == ">=":
        difference = difference.times(-1.0)
    weights = tuple(difference.weights.get(name, 0.0) for name in parameters)
    if not any(weights):
        raise ValueError("it does not depend on any parameter.")
    ranges = [high - low for low, high in (p.range for p in parameters.values())]
    scale = math.fsum(abs(w) * r for w, r in zip(weights, ranges, strict=True))
    bound = -difference.number
    if not (math.isfinite(scale) and math.isfinite(bound)):
        raise ValueError("its numbers are too large.")
    constraint = Constraint(text, weights, bound + 0.0, sign == "==", scale)
    _check_possible(constraint, [p.range for p in parameters.values()], difference.names)
    return constraint


def _check_possible(
    constraint: Constraint, ranges: Sequence[tuple[float, float]], names: Sequence[str]
) -> None:
    """Refuse a constraint that no design between the bounds can meet."""
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


@dataclass(frozen=True)
class _Sum:
    """A number plus weights times parameters."""

    number: float
    weights: Mapping[str, float]

    @property
    def names(self) -> list[str]:
        """Parameters that count."""
        return [name for name, weight in self.weights.items() if weight]

    def plus(self, other: "_Sum") -> "_Sum":
        weights = {n: self.weights[n] + other.weights[n] for n in self.weights}
        return _Sum(self.number + other.number, weights)

    def times(self, factor: float) -> "_Sum":
        weights = {name: factor * weight for name, weight in self.weights.items()}
        return _Sum(factor * self.number, weights)

    def minus(self, other: "_Sum") -> "_Sum":
        return self.plus(other.times(-1.0))


class _Reader:
    """Reads one text from left to right; each method reads as much as it is named after."""

    def __init__(self, text: str, parameters: Mapping[str, Parameter]) -> None:
        self.text = text
        self.parameters = parameters
        self.tokens = _tokens(text, parameters)

    def comparison(self) -> tuple[list[_Sum], list[str]]:
        """Read sums with comparisons between them."""
        sides, signs = [self.sum()], []
        while self.tokens:
            sign = self.next()
            if sign not in _COMPARISONS:
                raise ValueError(self._unexpected(sign))
            signs.append(_COMPARISONS[sign])
            sides.append(self.sum())
        if not signs:
            raise ValueError(f"expected <=, >= or == between two sums, {_EXAMPLE}.")
        if len(signs) > 2 or (len(signs) == 2 and (signs[0] != signs[1] or "==" in signs)):
            raise ValueError('expected one comparison, or a range such as "0.2 <= a + b <= 0.8".')
        return sides, signs

    def sum(self) -> _Sum:
        """Read products with + and - between them."""
        total = self.product()
        while self.peek() in ("+", "-"):
            sign = 1.0 if self.next() == "+" else -1.0
            total = total.plus(self.product().times(sign))
        return total

    def product(self) -> _Sum:
        """Read factors with * and / between them; ``2 a`` is ``2 * a``."""
        result = self.factor()
        while True:
            if self.peek() in ("*", "/"):
                sign = self.next()
                result = self._combined(sign, result, self.factor())
            elif self.peek() == "(" or self._is_operand(self.peek()):
                result = self._combined("*", result, self.factor())
            else:
                return result

    def factor(self) -> _Sum:
        """Read a number, a parameter or a sum in brackets, with its sign."""
        token = self.next()
        if token in ("+", "-"):
            return self.factor().times(-1.0 if token == "-" else 1.0)
        zeros = dict.fromkeys(self.parameters, 0.0)
        if isinstance(token, float):
            return _Sum(token, zeros)
        if isinstance(token, _Name):
            return _Sum(0.0, {**zeros, token.name: 1.0})
        if token == "(":
            inner = self.sum()
            if self.next() != ")":
                raise ValueError("a bracket is not closed.")
            return inner
        raise ValueError(self._unexpected(token))

    def peek(self) -> "_Token":
        """Return the next token; an empty text at the end."""
        return self.tokens[0] if self.tokens else ""

    def next(self) -> "_Token":
        """Take the next token."""
        return self.tokens.pop(0) if self.tokens else ""

    @staticmethod
    def _is_operand(token: "_Token") -> bool:
        return isinstance(token, float | _Name)

    def _combined(self, sign: "_Token", a: _Sum, b: _Sum) -> _Sum:
        if sign == "/":
            if b.names:
                raise ValueError(
                    f"it divides by {b.names[0]!r}, which is not linear; multiply both sides by "
                    'it: "a <= 2 * b" instead of "a / b <= 2".'
                )
            if not b.number:
                raise ValueError("it divides by 0.")
            return a.times(1 / b.number)
        if a.names and b.names:
            raise ValueError(
                f"it multiplies {a.names[0]!r} and {b.names[0]!r}; a constraint must be linear: "
                "sums of parameters times numbers."
            )
        return b.times(a.number) if not a.names else a.times(b.number)

    def _unexpected(self, token: "_Token") -> str:
        if token in ("<", ">"):
            return f"write {token}= instead of {token}; designs on the limit are allowed."
        if token == "":
            return f"it ends too early; expected a number or a parameter, {_EXAMPLE}."
        shown = token.name if isinstance(token, _Name) else token
        return f"did not expect {shown!r} there."


@dataclass(frozen=True)
class _Name:
    name: str


_Token = str | float | _Name


def _tokens(text: str, parameters: Mapping[str, Parameter]) -> list[_Token]:
    """Cut a text into numbers, names and symbols.

    Names of parameters come first, the longest of them, so that ``2-propanol`` is one name where
    there is such a parameter. Any name may stand in quotes.
    """
    names = sorted(parameters, key=len, reverse=True)
    tokens: list[_Token] = []
    rest = text.strip()
    while rest:
        token, length = _first(rest, names)
        if isinstance(token, _Name) and isinstance(parameters[token.name], Categorical):
            raise ValueError(f"{token.name!r} is categorical; only numbers can be constrained.")
        tokens.append(token)
        rest = rest[length:].lstrip()
    return tokens


def _first(rest: str, names: Sequence[str]) -> tuple[_Token, int]:
    if rest[0] in "'\"`":
        name, quote, _ = rest[1:].partition(rest[0])
        if not quote:
            raise ValueError(f"the quote before {name!r} is not closed.")
        return _known(name, names), len(name) + 2
    for name in names:
        if rest.startswith(name) and not _goes_on(name, rest[len(name) :]):
            return _Name(name), len(name)
    if number := _NUMBER.match(rest):
        return float(number[0]), number.end()
    if word := _WORD.match(rest):
        return _known(word[0], names), word.end()
    for symbol in _SYMBOLS:
        if rest.startswith(symbol):
            return symbol, len(symbol)
    raise ValueError(f"did not expect {rest[0]!r} there.")


def _goes_on(name: str, behind: str) -> bool:
    """Say whether a name is only the beginning of a longer word."""
    joined = name[-1:] + behind[:1]
    return len(joined) == 2 and re.fullmatch(r"\w\w", joined) is not None


def _known(name: str, names: Sequence[str]) -> _Name:
    if name in names:
        return _Name(name)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {sorted(names)}."
    raise ValueError(f"unknown parameter {name!r}; {hint}")
