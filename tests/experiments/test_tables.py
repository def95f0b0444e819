"""The tables that the docs link to are those of the stored results."""

import pytest

from experiments.harness.store import Store
from experiments.registry import KNOWN

STORE = Store()
QUICK = ("modelling", "expectations", "surrogates", "family", "regret-growth", "bound",
         "quadrature-nodes", "optuna-ask", "inference-time", "in-spec",
         "measuring-held-out", "reliability")  # fmt: skip
NOT_RUN: set[str] = set()
"""Experiments whose long runs are still to be made. This set may only shrink."""
PUBLISHED = [name for name in KNOWN if (STORE.folder / f"{name}.md").exists()]


def test_every_experiment_that_was_run_is_published():
    assert set(KNOWN) - NOT_RUN == set(PUBLISHED)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PUBLISHED]
)
def test_stored_results_give_the_published_table(name):
    experiment = KNOWN[name]
    tasks = experiment.tasks(experiment.repeats)
    text = f"# {experiment.title}\n\n{experiment.summary(STORE.results(tasks))}\n"
    published = (STORE.folder / f"{name}.md").read_text(encoding="utf-8")
    assert published.startswith(text)
    assert f"Commits: {', '.join(STORE.commits(tasks))}." in published
