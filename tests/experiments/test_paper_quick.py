"""Small versions of all experiments run, are kept, tabulated and drawn: ``make paper-quick``."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.harness.store import Store
from experiments.registry import PAPERS

ROOT = Path(__file__).parents[2]


def experiments(*arguments):
    command = [sys.executable, "-m", "experiments", *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, check=True)


@pytest.mark.slow
def test_a_small_version_of_everything_runs_and_is_drawn(tmp_path):
    experiments("all", "--quick", "--jobs", 2, "--results", tmp_path, "--images", tmp_path)
    for name, experiment in PAPERS.items():
        tasks = experiment.tasks(min(2, experiment.repeats), quick=True)
        assert all(map(Store(tmp_path).has, tasks))
        assert (tmp_path / f"{name}.md").read_text(encoding="utf-8").startswith("# ")
    assert len(list(tmp_path.glob("*.png"))) > len(PAPERS)
