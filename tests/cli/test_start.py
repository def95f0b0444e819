"""Help and completion come at once: they do not import PyTorch."""

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
    for words in (["--help"], ["tell", "--help"], ["--version"], ["--show-completion", "bash"]):
        subprocess.run([sys.executable, "-c", CODE.format(words=words)], check=True, timeout=60)


def test_importing_airbo_imports_no_campaign():
    code = "import sys, airbo; airbo.Optimizer; assert not {'optuna', 'typer'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_package_offers_all_its_names():
    import airbo

    assert all(getattr(airbo, name) is not None for name in airbo.__all__)
    assert set(airbo.__all__) <= set(dir(airbo))
    assert airbo.uncertainty.Exact() is not None
