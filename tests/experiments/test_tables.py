"""The tables that the docs link to are those of the stored results."""

import pytest

from experiments.harness.packed import SUFFIX
from experiments.harness.store import Store
from experiments.registry import KNOWN

STORE = Store()
QUICK = (
    "modelling",
    "surrogates",
    "regret-growth",
    "bound",
    "inference-time",
    "in-spec",
)
STORED = sorted(path.name.removesuffix(SUFFIX) for path in STORE.folder.glob(f"*{SUFFIX}"))


def test_every_experiment_that_was_run_is_published():
    assert STORED
    for name in STORED:
        assert name in KNOWN
        assert (STORE.folder / f"{name}.md").exists()


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in STORED]
)
def test_stored_results_give_the_published_table(name):
    experiment = KNOWN[name]
    tasks = experiment.tasks(experiment.repeats)
    text = f"# {experiment.title}\n\n{experiment.summary(STORE.results(tasks))}\n"
    published = (STORE.folder / f"{name}.md").read_text(encoding="utf-8")
    assert published.startswith(text)
    assert f"Commits: {', '.join(STORE.commits(tasks))}." in published
