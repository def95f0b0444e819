"""Results as Markdown."""

from collections.abc import Sequence

from experiments.harness.palette import shown


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table; methods get the names that readers know."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(shown, line))} |" for line in lines)


def only_tables(text: str) -> str:
    """Leave out the paragraphs between tables."""
    return "\n\n".join(part for part in text.split("\n\n") if part.startswith("|"))
