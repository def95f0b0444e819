"""What the experiments know of the library's insides."""

import ast
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
PUBLIC = {"airbo.integrations.optuna"}
ALLOWED = {"subjects/internals.py"}


def private_imports(path):
    """Return the modules below a package of airbo that a file imports from."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    return {n for n in names if n and n.startswith("airbo.") and n.count(".") > 1} - PUBLIC


def test_private_parts_of_the_library_are_imported_in_one_place():
    files = sorted(EXPERIMENTS.rglob("*.py"))
    found = {str(path.relative_to(EXPERIMENTS)) for path in files if private_imports(path)}
    assert found == ALLOWED
