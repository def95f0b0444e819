"""airbo predict, for people and for programs."""

import pytest

from tests.lab.cli.common import airbo_, data
from tests.lab.common import LINE, write


@pytest.fixture
def line(here):
    """A campaign with values that rise with x."""
    write(here, LINE)
    for i in range(9):
        airbo_("tell", f"x={i / 8}", i / 8)
    return here


def test_one_design_is_predicted_in_words(line):
    said = " ".join(airbo_("predict", "x=0,5").stdout.split())
    assert said.startswith("At x = 0.5 mm: value: expected 0.5")
    assert "9 of 10 single runs give" in said
    assert "Nearest experiments, with their distance in ranges of the parameters: 4 (0%)" in said
    assert "Brackets are 90% intervals" in said


def test_programs_get_the_same(line):
    found = data("predict", "x=0.5")
    assert found["design"] == {"x": 0.5}
    value = found["outcomes"]["value"]
    assert value["mean"] == pytest.approx(0.5, abs=0.1)
    assert value["interval"][0] < value["mean"] < value["interval"][1]
    assert value["single_run"][0] <= value["interval"][0]
    assert found["nearest"][0] == {"number": 4, "distance": 0.0}


def test_without_settings_the_recommended_design_is_predicted(line):
    best = data("recommend")["design"]
    found = data("predict")
    assert found["design"] == best
    assert "as recommended" in airbo_("predict").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0.5"], "Settings are written as name=value, once each, got '0.5'."),
        (["x=a"], "x=a: x must be a number, got 'a'."),
        (["y=1"], "y=1: unknown parameter 'y'"),
        (["x=7"], "'x'"),
        (["x=1,250"], "1,250 can mean 1.250 or 1250"),
        (["x=1", "x=0"], "Settings are written as name=value, once each, got 'x=0'."),
    ],
)
def test_mistakes_are_named(line, words, said):
    found = airbo_("predict", *words, code=1)
    assert said in " ".join(found.stderr.split())
