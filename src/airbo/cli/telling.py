"""What stands behind ``airbo tell``: numbers, values and designs, in any number of words."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airbo.campaign.errors import CampaignError
from airbo.observed import VALUE
from airbo.space import Space
from airbo.words import nearest, number_of, value_of

USAGE = (
    "write: airbo tell 3 1.25, airbo tell 3=1.25 4=1.31, airbo tell speed=120 depth=0.5 1.25, or, "
    "if you set another speed than asked in experiment 3, airbo tell 3 speed=120 1.25"
)


_LEAVE_OUT = " Leave out what was not measured."


@dataclass(frozen=True)
class Report:
    """What stands behind ``airbo tell``."""

    outcomes: list[tuple[int | dict[str, Any], Any]]
    """Experiments by number, or a design, with their values, or their outcomes by name."""
    design: dict[str, Any] | None = None
    """Parameters that were set otherwise than asked."""


def report_in(
    words: Sequence[str],
    space: Space,
    outcomes: Collection[str] | None = None,
    value_name: str = VALUE,
) -> Report:
    """Read the words of ``airbo tell``.

    Args:
        words: What stands behind it.
        space: The parameters.
        outcomes: Names of the outcomes, where the campaign has several.
        value_name: Name of the value, which may stand before it, where there is one value.
    """
    if outcomes is not None:
        return _report_of_several(words, space, outcomes)
    try:
        pairs = [word.strip().partition("=") for word in words]
        own = "" if value_name in space.names or _is_number(value_name) else value_name
        named = [v for n, eq, v in pairs if eq and n == own]
        pairs = [p for p in pairs if not (p[1] and p[0] == own)] + [(v, "", "") for v in named]
        by_number = {n: v for n, eq, v in pairs if eq and _is_number(n)}
        design = {n: value_of(space, n, v) for n, eq, v in pairs if eq and not _is_number(n)}
        bare = [n for n, eq, _ in pairs if not eq]
        _check_once([n for n, eq, _ in pairs if eq])
        if by_number and not design and not bare:
            return Report(
                [(int(n), number_of(v, f"the value of {n}")) for n, v in by_number.items()]
            )
        if design and not by_number and len(bare) == 1:
            return Report([(design, number_of(bare[0], "the value"))])
        if not by_number and len(bare) == 2 and _is_number(bare[0]):
            return Report([(int(bare[0]), number_of(bare[1], "the value"))], design or None)
    except ValueError as error:
        raise CampaignError(_first_upper(str(error)) + _hint(str(error))) from None
    raise CampaignError(f"This is not understood: {' '.join(words)!r}. Please {USAGE}.")


def _report_of_several(words: Sequence[str], space: Space, outcomes: Collection[str]) -> Report:
    """Read a number or a design, and outcomes by name."""
    try:
        pairs = [word.strip().partition("=") for word in words]
        bare = [n for n, eq, _ in pairs if not eq]
        _check_once([n for n, eq, _ in pairs if eq])
        measured = {n: number_of(v, f"outcome {n!r}") for n, eq, v in pairs if eq and n in outcomes}
        rest = {n: v for n, eq, v in pairs if eq and n not in outcomes}
        for name in rest:
            if name not in space.names:
                raise ValueError(f"unknown name {name!r}{nearest(name, [*outcomes, *space.names])}")
        design = {n: value_of(space, n, v) for n, v in rest.items()}
        if measured and len(bare) == 1 and _is_number(bare[0]):
            return Report([(int(bare[0]), measured)], design or None)
        if measured and design and not bare:
            return Report([(design, measured)])
    except ValueError as error:
        raise CampaignError(_first_upper(str(error)) + _hint(str(error), _LEAVE_OUT)) from None
    example = " ".join(f"{name}=1.25" for name in outcomes)
    raise CampaignError(
        f"This is not understood: {' '.join(words)!r}. Please write: airbo tell 3 {example}; leave "
        "out what was not measured."
    )


def _check_once(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is named twice: which one counts?")


def named_values(words: Sequence[str], space: Space) -> Mapping[str, float]:
    """Read measured inputs such as ``speed=121.3``."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise CampaignError(f"--executed is written as name=value, got {word!r}.")
        if name not in space.names:
            raise CampaignError(f"--executed: unknown parameter {name!r}{space.hint(name)}")
        try:
            found[name] = number_of(text, f"--executed {name}")
        except ValueError as error:
            raise CampaignError(str(error)) from None
    return found


def _is_number(text: str) -> bool:
    """Say whether this is the number of an experiment; ² is a digit too, but not for ``int``."""
    return text.isascii() and text.isdigit() and len(text) < 19


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _hint(text: str, else_: str = "") -> str:
    """Say how to report a failed experiment, where that may have been meant."""
    failed = any(word in text for word in ("'nan'", "'inf'", "'-inf'", "'failed'", "'fail'"))
    return f"{else_} For an experiment that gave no value: airbo fail NUMBER." if failed else ""
