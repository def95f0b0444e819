"""The page of a campaign with several outcomes."""

import re

import pytest

from airbo.lab import Campaign
from tests.lab.serve.common import TWO, write

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
        "This was told before. Enter another value, or undo the report."
    ]
    assert dict(Campaign.open(file).experiment(0).outcomes) == {"strength": 3.0, "leak": 1.0}


def test_a_design_that_cannot_be_used_is_told_apart_from_a_failure(ann, live, file):
    ask(ann, live)
    page = ann.send("/infeasible/0")
    assert page.said() == ["Experiment 0: failed, its design cannot be used."]
    assert Campaign.open(file).experiment(0).infeasible


def test_the_page_shows_the_compromise_and_the_front(models, ann, live, file):
    with Campaign.open(file) as campaign:
        told = [({"x": x}, {"strength": 9 * x, "leak": x**2}) for x in (0.1, 0.3, 0.5, 0.7, 0.9)]
        campaign.tell_all(told)
    ann.get()
    live.wait()
    advice = ann.get().words.partition("Best design so far")[2]
    assert "The compromise on a front of" in advice
    assert "Or choose from the front" in advice
    assert [chart.title for chart in live.found().charts.values()] == ["strength against leak"]


@pytest.mark.parametrize("file", [MEASURED], indirect=True)
def test_the_page_shows_the_measure_that_decides(models, ann, live, file):
    with Campaign.open(file) as campaign:
        campaign.tell_all([({"x": x}, 4 * x) for x in (0.1, 0.3, 0.5, 0.7, 0.9)])
    ann.get()
    live.wait()
    advice = ann.get().words.partition("Best design so far")[2]
    assert re.search(r"Expected value \d+\.\d% ± \d+\.\d% in spec", advice)
    assert "operating window" in advice.lower()


@pytest.fixture
def drawn(monkeypatch):
    """Draw quickly: few states, few pairs."""
    monkeypatch.setattr("airbo.lab.serve.advice.N_STATES", 2)
    monkeypatch.setattr("airbo.lab.serve.advice.N_PAIRS", 1)


@pytest.mark.parametrize("file", [UNNAMED, ONE, TWO], indirect=True)
def test_every_outcome_has_charts_whether_it_was_named_or_not(drawn, ann, live, file):
    with Campaign.open(file) as campaign:
        names = list(campaign.settings.outcomes)
        values = {"strength": lambda x: 9 * x, "leak": lambda x: x**2}
        for x in (0.1, 0.3, 0.5, 0.7, 0.9):
            campaign.tell({"x": x}, {name: values[name](x) for name in names})
    ann.get()
    live.wait()
    assert live.found().error is None
    keys = list(live.found().charts)
    for name in names:
        assert {f"{name}: progress", f"{name}: trust", f"{name}: along x"} <= set(keys)
    page = ann.get("/charts")
    assert page.text.count('class="plot"') == len(keys)
    assert len(live.found().advice.sentences) >= 1
