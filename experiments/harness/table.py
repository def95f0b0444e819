"""Results as Markdown."""

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def ratio(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def error(value: float | None) -> str:
    return "–" if value is None else f"{value:.0e}"


def whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
