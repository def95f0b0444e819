"""What a program imports is installed by the extra that the program needs."""

import ast
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def installed_by(extra: str) -> set[str]:
    """Return the packages of an extra, those of the extras it names, and airbo's own."""
    found = {"airbo"}
    for line in metadata.requires("airbo") or []:
        name, extras, condition = re.fullmatch(
            r"([\w.-]+)(?:\[([\w,-]+)\])?[^;]*(?:;\s*(.*))?", line
        ).groups()  # type: ignore[union-attr]
        wanted = re.search(r'extra == "([\w-]+)"', condition or "")
        if wanted and wanted[1] != extra:
            continue
        found.add(name.lower())
        for part in (extras or "").split(",") if name == "airbo" else ():
            found |= installed_by(part)
    return found


def imported_by(folder: str) -> set[str]:
    """Return the top-level modules that the programs of a folder import."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"experiments", "airbo"}


@pytest.mark.parametrize(
    ("folder", "extra"), [("experiments", "experiments"), ("examples", "plot")]
)
def test_an_extra_installs_what_its_programs_import(folder, extra):
    homes = metadata.packages_distributions()
    missing = {
        module
        for module in imported_by(folder)
        if module in homes and installed_by(extra).isdisjoint(d.lower() for d in homes[module])
    }
    assert not missing
