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


def test_every_row_of_a_table_is_predicted_as_if_alone(line):
    (line / "designs.csv").write_text("x [mm];remarks_of;value\n0,5;;\n0,25;;1,0\n", "utf-8")
    refused = airbo_("predict", "--table", "designs.csv", code=3)
    assert "unknown column 'remarks_of'" in refused.stderr
    assert "--ignore-others" not in refused.stderr  # predict has no such option
    (line / "designs.csv").write_text("x [mm];value\n0,5;\n0,25;1,0\n", "utf-8")
    rows = data("predict", "--table", "designs.csv")["predictions"]
    assert rows == [data("predict", "x=0.5"), data("predict", "x=0.25")]
    printed = airbo_("predict", "--table", "designs.csv").stdout.splitlines()
    assert printed[0].startswith("x,value,value_low,value_high,value_run_low,value_run_high")
    assert len(printed) == 3
    airbo_("predict", "--table", "designs.csv", "-o", "out.csv")
    assert (line / "out.csv").read_text("utf-8").splitlines() == printed


def test_all_mistakes_of_a_table_are_named_at_once(line):
    (line / "designs.csv").write_text("x\nten\n0.5\nmany\n7\n", "utf-8")
    found = airbo_("predict", "--table", "designs.csv", code=3).stderr
    assert "line 2" in found
    assert "line 4" in found
    assert "line 5" in found
    (line / "designs.csv").write_text("x\n0.5\n7\n", "utf-8")
    assert "Use --allow-outside" in airbo_("predict", "--table", "designs.csv", code=3).stderr
    assert len(data("predict", "--table", "designs.csv", "--allow-outside")["predictions"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0.5"], "Values are written as name=value, once each, got '0.5'."),
        (["x=a"], "x=a: x must be a number, got 'a'."),
        (["y=1"], "y=1: unknown parameter 'y'"),
        (["x=a", "y=1"], "x=a: x must be a number, got 'a'. y=1: unknown parameter 'y'"),
        (["x=7"], "'x'"),
        (["x=1,250"], "1,250 can mean 1.250 or 1250"),
        (["x=1", "x=0"], "Values are written as name=value, once each, got 'x=0'."),
    ],
)
def test_mistakes_are_named(line, words, said):
    found = airbo_("predict", *words, code=1)
    assert said in " ".join(found.stderr.split())
