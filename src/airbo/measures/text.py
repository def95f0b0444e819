"""Measures as people type them, in a campaign file or after a flag: ``cvar:0.9``."""

from airbo.measures.kinds import (
    CVaR,
    InSpec,
    Mean,
    MeanStd,
    Measure,
    Quantile,
    Target,
    Worst,
)

_WORDS: dict[str, type[Measure]] = {
    "mean": Mean,
    "mean-std": MeanStd,
    "quantile": Quantile,
    "cvar": CVaR,
    "worst": Worst,
    "in-spec": InSpec,
    "target": Target,
}
_EXAMPLES = {"in-spec": "in-spec:0.5..2", "target": "target:50"}


def from_text(text: str) -> Measure:
    """Read a measure: a word, and what belongs to it after a colon.

    >>> from_text("cvar:0.9"), from_text("in-spec:..0.2"), from_text("worst")
    (CVaR(level=0.9), InSpec(low=None, high=0.2), Worst())
    """
    word, colon, rest = text.strip().partition(":")
    word = word.strip().lower()
    if word not in _WORDS:
        raise ValueError(f"There is no measure {word!r}; choose from {', '.join(_WORDS)}.")
    kind = _WORDS[word]
    if not colon:
        if word in _EXAMPLES:
            needed = "limits" if word == "in-spec" else "a number"
            raise ValueError(f"{word} needs {needed}, as {_EXAMPLES[word]}.")
        return kind()
    if word == "in-spec":
        low, dots, high = rest.partition("..")
        if not dots:
            raise ValueError(
                "in-spec takes two limits with two dots between them, as in-spec:0.5..2, "
                f"in-spec:..2 or in-spec:0.5.., got {rest.strip()!r}."
            )
        return InSpec(*(_number(word, part) if part.strip() else None for part in (low, high)))
    if word in ("mean", "worst"):
        raise ValueError(f"{word} takes no number, got {rest.strip()!r}.")
    return kind(_number(word, rest))  # type: ignore[call-arg]


def to_text(measure: Measure) -> str:
    """Write a measure so that ``from_text`` reads it.

    >>> to_text(CVaR(0.9)), to_text(InSpec(high=0.2))
    ('cvar:0.9', 'in-spec:..0.2')
    """
    word = next(word for word, kind in _WORDS.items() if type(measure) is kind)
    given = measure.to_dict()
    if isinstance(measure, InSpec):
        low, high = (str(given.get(name, "")).removesuffix(".0") for name in ("low", "high"))
        return f"{word}:{low}..{high}"
    numbers = [str(v).removesuffix(".0") for name, v in given.items() if name != "kind"]
    return ":".join([word, *numbers])


def _number(word: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        hint = " Write 0.95 for 95%." if "%" in text else ""
        raise ValueError(f"{word}: {text.strip()!r} is not a number.{hint}") from None
