"""The tutorials run, and their pages show what the scripts say, print and draw."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

from experiments.figures import tutorials
from tests.docs.test_examples import assert_alike

QUICK = {"log"}
"""Tutorials that need a few seconds; the others are run by `make slow`."""


def page(name):
    return (tutorials.SCRIPTS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", tutorials.names())
def test_a_page_has_the_text_and_the_code_of_its_script(name):
    shown = page(name)
    for cell in tutorials.cells(name):
        assert str(cell) in shown, "write it again: python -m experiments.figures.tutorials"


@pytest.mark.parametrize("name", tutorials.names())
def test_a_page_is_listed_and_its_pictures_are_there(name):
    assert f"]({name}.md)" in page("index")
    pictures = list(tutorials.PICTURES.glob(f"{name}-*.png"))
    assert all(f"../images/tutorials/{path.name})" in page(name) for path in pictures)


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in tutorials.names()
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_tutorial_prints_and_draws_what_its_page_shows(name, tmp_path):
    matplotlib.use("agg")
    plt.close("all")
    shown, _ = tutorials.run(name, tmp_path)
    text = page(name)
    for cell, now in shown:
        before = text.partition(str(cell))[2].lstrip()
        if now.printed:
            assert before.startswith("```text\n")
            printed = before.partition("```text\n")[2].partition("\n```")[0]
            if name == "first":
                assert now.printed == printed  # the first tutorial is exact
            else:
                assert_alike(now.printed, printed)
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn == {path.name for path in tutorials.PICTURES.glob(f"{name}-*.png")}
