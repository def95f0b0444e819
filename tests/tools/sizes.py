"""Write the reading path into docs/architecture.md: ``python -m tests.tools.sizes``.

Run it after a change of the layout.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "airbo"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- reading path -->", "<!-- end -->"

READING = [
    ("uncertainty/normal.py", ["Normal"], "one kind of P_x, whole"),
    ("uncertainty/gaussians.py", [""], "P_x as a sum of Gaussians: notation and equations"),
    ("uncertainty/in_cube.py", ["InCube"], "the same in the unit cube, which models see"),
    ("embeddings/features.py", ["Features", "Embedding"], "P_x as a point of a Hilbert space"),
    ("embeddings/inner_product.py", [""], "⟨ψ_P, ψ_Q⟩: notation and equations"),
    (
        "embeddings/inner_product.py",
        ["GaussianEmbedding.compute", "GaussianEmbedding.inner"],
        "the same, computed",
    ),
    ("models/surrogates.py", ["UGP", "ExpectationGP", "RelevanceGP"], "the default model"),
    ("models/noise.py", ["UnseenInputLikelihood"], "what the unseen x' adds to the noise"),
    ("models/gp.py", ["UncertainInputGP.posterior"], "its posterior, as BoTorch asks for it"),
    ("acquisition/gain.py", [""], "the knowledge gradient: equations"),
    ("acquisition/gain.py", ["ExpectedGain"], "what one experiment is worth"),
    ("optimizer/record.py", ["History"], "what was asked and told"),
    ("optimizer/surrogate.py", ["Surrogate"], "from observations to a fitted model"),
    ("optimizer/search.py", ["next_design"], "the next design"),
    ("optimizer/goal.py", ["OutcomeModel.of_measure", "OutcomeModel.predict"], "what it predicts"),
    (
        "optimizer/choice.py",
        ["Choice.recommend", "Choice.front", "Choice._candidates"],
        "the recommended design and the front",
    ),
    (
        "optimizer/optimizer.py",
        ["Optimizer.ask", "Optimizer.tell", "Optimizer.recommend"],
        "the one object with state, which joins them",
    ),
]
"""File, names in it (an empty one: what the file opens with), and what one reads there."""


def n_lines(file: str, name: str) -> int:
    """Return how many lines a class, a function, a method or the opening of a file has."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    if not name:
        return tree.body[0].end_lineno or 0
    found = [
        node
        for owner, nodes in _definitions(tree)
        for node in nodes
        if ".".join([*owner, node.name]) == name
    ]
    if not found:
        raise LookupError(f"{file} has no {name}")
    return sum((node.end_lineno or 0) - node.lineno + 1 for node in found)


def _definitions(tree: ast.Module) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    kinds = (ast.ClassDef, ast.FunctionDef)
    tops = [node for node in tree.body if isinstance(node, kinds)]
    yield (), tops
    for top in tops:
        if isinstance(top, ast.ClassDef):
            yield (top.name,), [node for node in top.body if isinstance(node, ast.FunctionDef)]


def reading_path() -> tuple[list[str], int]:
    """Return the rows of the reading path, and its length in lines."""
    rows, total = [], 0
    for file, names, why in READING:
        total += sum(n_lines(file, name) for name in names)
        shown = ", ".join(f"`{name}`" for name in names if name) or "the first lines"
        rows.append(f"| `{file}`: {shown} | {why} |")
    return rows, total


def main() -> None:
    """Replace the table of the page."""
    rows, total = reading_path()
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END, 1)
    table = "\n".join(["| read | for |", "|---|---|", *rows])
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    print(f"{total:,} lines to read")


if __name__ == "__main__":
    main()
