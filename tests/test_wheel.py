"""The wheel: it is built, checked, installed into an empty environment and used there."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import airbo

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.needs("build", "twine")]


def run(*command, cwd):
    """Run a program as users do, without the paths and settings of the test run."""
    without = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in without}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Build the source archive, and from it the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    [path] = dist.glob("*.whl")
    return path


def test_the_package_index_would_accept_both(dist):
    assert len(list(dist.iterdir())) == 2
    run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=dist)


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "airbo",
        f"airbo-{airbo.__version__}.dist-info",
    }
    data = {name for name in names if name.startswith("airbo/") and not name.endswith(".py")}
    source = ROOT / "src" / "airbo"
    page = [*source.glob("lab/serve/templates/*"), *source.glob("lab/serve/static/*")]
    page = {f"airbo/{path.relative_to(source).as_posix()}" for path in page}
    assert data == {"airbo/py.typed", *page}
    modules = {f"airbo/{path.relative_to(source).as_posix()}" for path in source.rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules


def test_the_source_archive_holds_the_licence_and_no_tests(dist):
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "src/airbo/__init__.py"} <= names
    assert not {name for name in names if name.startswith(("tests", "experiments", "docs"))}


SCRIPT = """
import sys
import airbo
assert "torch" not in sys.modules
from airbo import uncertainty as unc

result = airbo.maximize(
    lambda design: -(design["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, unc.Normal(0.05),
    budget=8, seed=0, progress=False,
)
assert abs(result.design["x"] - 0.3) < 0.1
print(airbo.__version__, airbo.__file__)
"""


def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    run(python, "-m", "pip", "check", cwd=tmp_path)

    version, place = run(python, "-c", SCRIPT, cwd=tmp_path).split()
    assert version == airbo.__version__
    assert Path(place).is_relative_to(tmp_path / "venv")

    command = tmp_path / "venv" / "bin" / "airbo"
    assert run(command, "--version", cwd=tmp_path) == f"airbo {airbo.__version__}\n"
    run(command, "init", "--name", "line", "--parameter", "x=0:1", cwd=tmp_path)
    assert "x" in run(command, "ask", cwd=tmp_path)
