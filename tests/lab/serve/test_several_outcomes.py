"""The page of a campaign with several outcomes."""

import re

import pytest

from airbo.lab import Campaign
from airbo.lab.serve.view import small_chart
from tests.lab.common import write
from tests.lab.serve.common import TWO

MEASURED = 'measure = "in-spec:1.5..3"\nvalue = { unit = "mm" }\n' + TWO[: TWO.index("[outcomes")]
ONE = TWO[: TWO.index("[outcomes.leak")]
UNNAMED = 'value = { name = "strength", unit = "MPa" }\n' + TWO[: TWO.index("[outcomes")]


@pytest.fixture
def file(tmp_path, request):
    return write(tmp_path, getattr(request, "param", TWO))


def ask(visitor, live):
    visitor.send("/ask", n="1")
    live.wait()


def test_each_outcome_has_a_field_and_what_is_empty_was_not_measured(ann, live, file):
    ask(ann, live)
    page = ann.send("/tell/0", **{"outcome:strength": "3,5 MPa", "outcome:leak": ""})
    assert page.said() == ["Experiment 0: strength = 3.5 MPa."]
    ann.send("/tell/0", "/experiment/0", **{"outcome:leak": "0.2"})
    assert dict(Campaign.open(file).experiment(0).outcomes) == {"strength": 3.5, "leak": 0.2}
    words = ann.get("/experiments").words
    assert "strength MPa leak result" in words
    assert "3.5 0.2 ok" in words


def test_what_still_lacks_a_measurement_is_listed_and_completed_without_a_correction(
    ann, bob, live, file
):
    ask(ann, live)
    page = ann.send("/tell/0", **{"outcome:strength": "3"})
    assert "Waiting for a measurement 1 experiment lacks an outcome." in page.words
    form = page.forms["/tell/0"]
    assert "outcome:strength" not in form
    late = bob.get().forms["/tell/0"]
    page = ann.post("/tell/0", form | {"outcome:leak": "0.2"})
    assert "Waiting for a measurement" not in page.words
    assert page.said() == ["Experiment 0: strength = 3 MPa, leak = 0.2."]
    what = [c.what for c in Campaign.open(file).history() if c.undoable]
    assert what == ["told", "told"]
    page = bob.post("/tell/0", late | {"outcome:leak": "0.3"})  # somebody else was faster
    assert page.status == 409
    assert page.forms["/tell/0"]["outcome:leak"] == "0.3"
    assert Campaign.open(file).experiment(0).outcomes["leak"] == 0.2


def test_nothing_measured_and_a_measured_outcome_that_is_emptied_are_refused(ann, live, file):
    ask(ann, live)
    page = ann.send("/tell/0")
    assert page.status == 422
    assert page.said("mistake") == [
        "Enter what was measured. If there is none, say that it failed."
    ]
    ann.send("/tell/0", **{"outcome:strength": "3", "outcome:leak": "1"})
    page = ann.send("/tell/0", "/experiment/0", **{"outcome:leak": ""})
    assert page.said("mistake") == [
        "This was reported before. Enter another value, or undo the report."
    ]
    assert dict(Campaign.open(file).experiment(0).outcomes) == {"strength": 3.0, "leak": 1.0}


def test_a_design_that_cannot_be_used_is_told_apart_from_a_failure(ann, live, file):
    ask(ann, live)
    page = ann.send("/infeasible/0")
    assert page.said() == ["Experiment 0: failed, its design cannot be used."]
    assert Campaign.open(file).experiment(0).infeasible


def tell(file, values):
    """Tell five experiments, by functions of x."""
    with Campaign.open(file) as campaign:
        for x in (0.1, 0.3, 0.5, 0.7, 0.9):
            campaign.tell({"x": x}, {name: value(x) for name, value in values.items()})


def shown(visitor, live):
    """The work page, once the model has looked at everything."""
    visitor.get()
    live.wait()
    assert live.look().found.error is None
    return visitor.get()


STRENGTH, LEAK = {"strength": lambda x: 9 * x}, {"leak": lambda x: x**2}


def test_the_page_shows_the_compromise_and_the_front(models, ann, live, file):
    tell(file, STRENGTH | LEAK)
    assert "The compromise on a front of" in shown(ann, live).words
    assert "leak over strength" in ann.get("/report").words


@pytest.mark.parametrize("file", [MEASURED], indirect=True)
def test_the_page_shows_the_measure_that_decides(models, ann, live, file):
    tell(file, {"value": lambda x: 4 * x})
    advice = shown(ann, live).words.partition("Best design so far")[2]
    assert re.search(r"In spec: value between 1.5 and 3 mm \d+(\.\d+)?%", advice)
    assert "operating window" in ann.get("/report").words.lower()


CASES = [(UNNAMED, STRENGTH), (ONE, STRENGTH), (TWO, STRENGTH | LEAK)]


@pytest.mark.parametrize(("file", "values"), CASES, indirect=["file"])
def test_every_outcome_has_charts_whether_it_was_named_or_not(models, ann, live, file, values):
    tell(file, values)
    shown(ann, live)
    page = ann.get("/report").text
    for key in ("trust", "along", "progress"):
        section = page.partition(f'data-key="{key}"')[2].partition("</section>")[0]
        assert section.count('class="plot"') >= len(values), key


@pytest.mark.parametrize("file", [MEASURED], indirect=True)
def test_the_best_observed_value_is_the_one_in_the_middle_of_the_limits(ann, file):
    tell(file, {"value": lambda x: 4 * x})
    page = ann.get()
    assert "farthest inside the limits 2 mm" in page.words
    assert page.text.count('class="limit"') == 2
    assert "between 1.5 and 3 mm is in spec (dashed; squares are outside)" in page.words
    assert page.text.count('class="out"') == 3  # 0.4, 1.2 and 3.6
    assert page.text.count('<a href="/experiment/') >= 5 + 5  # from the chart, and the last results


def test_a_dot_stands_at_the_number_of_its_experiment(ann, live, file):
    with Campaign.open(file) as campaign:
        for i, told in enumerate(({"strength": 3}, {"leak": 0.1}, {"leak": 0.2}, {"strength": 2})):
            campaign.tell({"x": i / 4}, told)
        campaign.tell({"x": 0.9}, {"strength": 4})
        places = {
            name: [(e.number, x) for e, _, x, _ in small_chart(campaign.experiments, name, want)[2]]
            for name, want in campaign.settings.outcomes.items()
        }
    for numbered in places.values():
        [(first, left), *_, (last, right)] = numbered
        assert all((x - left) / (right - left) == (n - first) / (last - first) for n, x in numbered)
    assert [n for n, _ in places["strength"]] == [0, 3, 4]
    assert "strength of experiments 0 to 4" in ann.get().words
