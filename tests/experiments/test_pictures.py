"""The pictures of the README and the docs can be drawn again."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def figures(monkeypatch):
    """What draws them, and the names under which it saves."""
    found = runpy.run_path(str(DOCS / "figures.py"))
    drawn = []
    shared = found["draw_readme"].__globals__
    monkeypatch.setitem(shared, "save", lambda figure, name: drawn.append(name))
    monkeypatch.setitem(shared, "fit_gpytorch_mll", lambda mll: mll.eval())  # takes a minute
    yield found, drawn
    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        ("draw_readme", "readme"),
        ("draw_modelling", "modelling"),
        ("draw_scores", "modelling-scores"),
        ("draw_kinds", "kinds"),
    ],
)
def test_pictures_are_drawn_of_what_there_is(figures, draw, name):
    found, drawn = figures
    found[draw]()
    assert drawn == [name]
    assert (DOCS / "images" / f"{name}.png").is_file()
