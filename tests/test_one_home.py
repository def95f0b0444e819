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

STILL_TO_DO: set[str] = set()
"""Names that have two homes today. This set may only shrink."""


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
    new = {n: where for n, where in several.items() if n not in ALLOWED and n not in STILL_TO_DO}
    assert not new, "give one of each another name, or let both be one thing"


def test_the_list_of_what_is_to_do_only_shrinks():
    several = {name for name, where in homes().items() if len(where) > 1}
    assert several >= STILL_TO_DO, "take what has one home by now off the list"
    assert not STILL_TO_DO
