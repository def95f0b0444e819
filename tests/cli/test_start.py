"""Help and completion come at once: they do not import PyTorch."""

import os
import subprocess
import sys

CODE = """
import sys
from typer.testing import CliRunner
from airbo.cli.app import app
result = CliRunner().invoke(app, {words})
assert result.exit_code == 0, result.output
heavy = {{"torch", "optuna", "pandas", "botorch", "numpy"}} & set(sys.modules)
assert not heavy, heavy
"""


def test_help_imports_nothing_heavy():
    # the shell is named, not looked for among the parents of the process
    named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for words in (["--help"], ["tell", "--help"], ["--version"], ["--show-completion", "bash"]):
        code = CODE.format(words=words)
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=named)


def test_importing_airbo_imports_no_campaign():
    code = "import sys, airbo; airbo.Optimizer; assert not {'optuna', 'typer'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_package_offers_all_its_names():
    import airbo

    assert all(getattr(airbo, name) is not None for name in airbo.__all__)
    assert set(airbo.__all__) <= set(dir(airbo))
    assert airbo.uncertainty.Exact() is not None
