"""The tables that the docs link to are those of the stored results."""

import pytest

from experiments.harness import pages
from experiments.harness.store import SUFFIX, Store
from experiments.registry import KNOWN

STORE = Store()
STORED = sorted(path.name.removesuffix(SUFFIX) for path in STORE.folder.glob(f"*{SUFFIX}"))


def test_every_experiment_that_was_run_is_published():
    assert STORED
    for name in STORED:
        assert name in KNOWN
        assert (STORE.folder / f"{name}.md").exists()


@pytest.mark.parametrize("name", STORED)
def test_stored_results_give_the_published_table(name):
    experiment = KNOWN[name]
    tasks = experiment.tasks(experiment.repeats)
    text = f"# {experiment.title}\n\n{experiment.summary(STORE.results(tasks))}\n"
    published = (STORE.folder / f"{name}.md").read_text(encoding="utf-8")
    assert published.startswith(text)
    for mark, (page, excerpt) in experiment.excerpts(STORE.results(tasks)).items():
        assert pages.between(mark, page) == excerpt
    assert f"Commits: {', '.join(STORE.commits(tasks))}." in published


def test_new_results_replace_the_old_ones_in_the_documentation(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{pages.begin('speed')}\n\nold\n\n{pages.END}\n\nafter\n")
    for text in ("new", "newer"):
        pages.insert("speed", text, page)
        assert pages.between("speed", page) == text
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\n\nafter\n")


def test_the_documentation_has_a_place_for_all_results():
    marks = {
        pages.BENCHMARK: ["benchmark", "calibration", "slip", "choose"],
        pages.PAPER: ["paper"],
    }
    for page, names in marks.items():
        for name in names:
            assert pages.between(name, page)
