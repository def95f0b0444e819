"""Results as Markdown."""

from collections.abc import Sequence

from experiments.harness.palette import shown


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table; methods get the names that readers know."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(shown, line))} |" for line in lines)


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
