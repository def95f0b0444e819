"""Small versions of the paper's experiments run, are kept, tabulated and drawn."""

import io

import pytest
from rich.console import Console

from experiments.harness import runner
from experiments.harness.store import Store
from experiments.registry import PAPERS
from tests.experiments.small import small_tasks


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_a_small_version_runs_and_is_tabulated_and_drawn(name, tmp_path):
    experiment, store = PAPERS[name], Store(tmp_path)
    tasks = small_tasks(experiment, repeats=2)
    assert runner.run(experiment, tasks, store, console=Console(file=io.StringIO())) == []
    results = store.results(tasks)
    assert len(results.each) == len(tasks)
    text = experiment.summary(results)
    assert "| --- |" in text
    pictures = experiment.plot(results, tmp_path)
    assert all(path.is_file() for path in pictures)
    assert pictures or name == "inference-time"
