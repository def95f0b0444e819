"""airbo predict: words, JSON, several designs and tables."""

import json

import pandas as pd
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
    [found] = data("predict", "x=0.5")["predictions"]
    assert found["design"] == {"x": 0.5}
    value = found["outcomes"]["value"]
    assert value["mean"] == pytest.approx(0.5, abs=0.1)
    assert value["interval"][0] < value["mean"] < value["interval"][1]
    assert value["single_run"][0] <= value["interval"][0]
    assert found["nearest"][0] == {"number": 4, "distance": 0.0}


def test_a_parameter_named_several_times_gives_all_combinations(line):
    found = data("predict", "x=0.25", "x=0.5", "x=0.75")["predictions"]
    assert [p["design"]["x"] for p in found] == [0.25, 0.5, 0.75]
    shown = airbo_("predict", "x=0.25", "x=0.5", "x=0.75").stdout
    assert "What to expect" in shown
    assert shown.count("(0%)") == 3


def test_a_table_of_designs_gives_a_table(line):
    (line / "designs.csv").write_text("x;what\n0,25;a\n0,5;b\n", encoding="utf-8")
    said = airbo_("predict", "--table", "designs.csv", "-o", "expected.csv").stdout
    assert "Wrote 2 predictions to expected.csv." in said
    table = pd.read_csv(line / "expected.csv")
    assert list(table["x"]) == [0.25, 0.5]
    assert {"value", "value_low", "value_high", "value_run_low", "nearest"} <= {*table.columns}
    printed = airbo_("predict", "--table", "designs.csv", "-o", "-").stdout
    assert printed.splitlines()[0].startswith("x,value,")


def test_without_settings_the_recommended_design_is_predicted(line):
    best = data("recommend")["design"]
    [found] = data("predict")["predictions"]
    assert found["design"] == best
    assert "as recommended" in airbo_("predict").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0.5"], "Settings are written as name=value, got '0.5'."),
        (["x=a"], "x=a: x must be a number, got 'a'."),
        (["y=1"], "y=1: unknown parameter 'y'"),
        (["x=7"], "'x'"),
        (["x=1,250"], "1,250 can mean 1.250 or 1250"),
        (["x=1", "--table", "designs.csv"], "Name settings, or a table: not both."),
    ],
)
def test_mistakes_are_named(line, words, said):
    found = airbo_("predict", *words, code=1)
    assert said in " ".join(found.stderr.split())


def test_a_table_without_parameters_is_refused(line):
    (line / "designs.csv").write_text("speed\n1\n", encoding="utf-8")
    found = airbo_("predict", "--table", "designs.csv", "--json", code=3)
    assert "the header names no parameter; there are 'x'." in json.dumps(json.loads(found.stdout))
