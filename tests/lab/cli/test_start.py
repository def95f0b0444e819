"""Commands import what they need: help nothing heavy, a report of a value no PyTorch."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import airbo
from airbo import lab
from tests.lab.common import DESIGN, MILL, campaign

CODE = """
import sys
from typer.testing import CliRunner
from airbo.lab.cli.app import app
for words in {commands}:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
heavy = {heavy} & set(sys.modules)
assert not heavy, heavy
"""
MODELS = {"torch", "botorch", "gpytorch", "linear_operator", "scipy", "plotly", "pandas"}


def run(commands, heavy, folder):
    """Run commands in a new process, and look at what it has imported by then."""
    # the shell is named, not looked for among the parents of the process
    named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code = CODE.format(commands=commands, heavy=heavy)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=named, cwd=folder)


def test_help_imports_nothing_heavy(tmp_path):
    commands = [["--help"], ["tell", "--help"], ["--version"], ["--show-completion", "bash"]]
    run(commands, MODELS | {"optuna", "numpy", "sqlalchemy"}, tmp_path)


def begun(folder):
    """A campaign with a value and two pending experiments, 1 and 2."""
    with campaign(folder, MILL) as c:
        c.tell(DESIGN, 1.0)
        c.ask(2)


def test_telling_and_looking_need_no_model(tmp_path):
    begun(tmp_path)
    commands = [
        ["status"],
        ["tell", "1", "1.25"],
        ["tell", "1", "1.25"],
        ["tell", "1", "1.5", "--correct", "--executed", "speed=99"],
        ["tell", "speed=100", "depth=0.5", "passes=2", "tool=A", "2.0"],
        ["fail", "2", "--gave-up"],
        ["fail", "2"],
        ["status", "--json"],
    ]
    run(commands, MODELS, tmp_path)


def test_what_finds_designs_knows_neither_optuna_nor_the_command_line():
    root = Path(airbo.__file__).parent
    above = ("integrations", "lab")  # what is below does not import these: lint-imports
    below = [p for p in root.rglob("*.py") if p.relative_to(root).parts[0] not in above]
    assert len(below) > 50
    for path in below:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.split(".")[0] for n in names} & {"optuna", "typer"}, path


def test_the_package_offers_all_its_names():
    assert all(getattr(airbo, name) is not None for name in airbo.__all__)
    assert set(airbo.__all__) <= set(dir(airbo))
    assert airbo.uncertainty.Exact() is not None


WINDOWS = """
import os, signal, sys
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
for name in ("SIGHUP", "SIGKILL", "SIGALRM"):
    delattr(signal, name)
for name in ("fork", "killpg", "geteuid", "getuid"):
    delattr(os, name)
"""


def test_without_what_windows_lacks_campaigns_and_commands_work(tmp_path):
    begun(tmp_path)
    commands = [["tell", "1", "1.5"], ["fail", "2"], ["undo"], ["status"], ["export"]]
    code = WINDOWS + "import airbo\nairbo.Campaign\nimport airbo.lab.run\n"
    code += CODE.format(commands=commands, heavy=set())
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=tmp_path)


def test_campaigns_need_no_optuna_and_asking_no_tables_and_no_charts(tmp_path):
    begun(tmp_path)
    code = "import sys\nsys.modules['optuna'] = None\n"
    code += CODE.format(commands=[["ask"]], heavy={"pandas", "plotly", "matplotlib"})
    others = [["tell", "1", "1.5"], ["recommend"], ["export"], ["undo"], ["status"]]
    code += CODE.format(commands=others, heavy=set())
    code += """
result = CliRunner().invoke(app, ["import", "--study", "sqlite:///study.db", "mill"])
assert result.exit_code == 1, result.output
assert "pip install 'airbo[optuna]'" in result.output
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=tmp_path)


def test_every_name_of_the_lab_is_where_it_was_defined():
    for name in lab.__all__:
        assert getattr(lab, name).__qualname__ == name
        assert getattr(lab, name).__module__.startswith("airbo.lab.")
    assert lab.Told.__module__ == "airbo.lab.campaign"  # events have one, too
