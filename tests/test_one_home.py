"""One word has one home: no two modules define the same public name for different things."""

import ast
from collections import defaultdict
from pathlib import Path

import airbo

ROOT = Path(airbo.__file__).parent

ALLOWED = {
    "Empirical": "logged deviations (uncertainty), and an estimator made from samples (embeddings)",
    "recommend": "a command of airbo, and the answer of an Optuna study",
}
"""Names that the public interface gives to two things, and why nobody mistakes them."""


def homes() -> dict[str, list[str]]:
    """Return the modules that define each public class, function or constant."""
    found = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in _defined(node):
                if not name.startswith("_"):
                    found[name].append(path.relative_to(ROOT).as_posix())
    return {name: list(dict.fromkeys(where)) for name, where in found.items()}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    parts = [part for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def test_every_name_has_one_home():
    several = {name: where for name, where in homes().items() if len(where) > 1}
    new = {name: where for name, where in several.items() if name not in ALLOWED}
    assert not new, "give one of each another name, or let both be one thing"
    assert several.keys() >= ALLOWED.keys(), "take what has one home by now off the list"
