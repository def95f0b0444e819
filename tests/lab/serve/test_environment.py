"""What nobody sets, on the page: asked with, told, corrected, predicted, printed."""

import pytest

from airbo.lab import Campaign
from airbo.lab.serve.models import profile
from tests.lab.common import write
from tests.lab.serve.test_api import DESIGN, OVEN


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, OVEN)


def test_a_card_asks_for_what_was_measured(ann, live, file):
    ann.send("/ask", **{"given:humidity": "63"})
    live.wait()
    card = ann.get("/").forms["/tell/0"]
    assert card["executed:humidity"] == "63.0"
    assert "63" in ann.get("/run-sheet").words
    ann.send("/tell/0", value="1.25", **{"executed:humidity": "61"})
    e = Campaign.open(file).experiment(0)
    assert (dict(e.given), dict(e.executed)) == ({"humidity": 63.0}, {"humidity": 61.0})
    assert ann.get("/experiment/0").forms["/tell/0"]["executed:humidity"] == "61.0"
    ann.send("/tell/0", page="/experiment/0", value="1.35")
    e = Campaign.open(file).experiment(0)
    assert (e.outcomes["roughness"], dict(e.executed)) == (1.35, {"humidity": 61.0})
    ann.send("/tell/0", page="/experiment/0", **{"executed:humidity": ""})
    assert Campaign.open(file).experiment(0).executed == {}


def test_a_field_that_was_emptied_says_that_nothing_was_measured(ann, live, file):
    ann.send("/ask", **{"given:humidity": "63"})
    live.wait()
    ann.send("/tell/0", value="1.25", **{"executed:humidity": ""})
    assert Campaign.open(file).experiment(0).executed == {}


def test_what_cannot_be_is_refused_at_its_field(ann, live):
    ann.send("/ask")
    live.wait()
    answer = ann.send("/tell/0", value="1.25", **{"executed:humidity": "wet"})
    assert answer.said("mistake") == ["humidity must be a number, got 'wet'."]
    answer = ann.send("/tell/0", value="1.25", **{"executed:humidity": "99"})
    assert "its bounds are 20 and 90" in answer.words
    answer = ann.send("/ask", **{"given:humidity": "10"})
    assert "'humidity': value must be between 20 and 90, got 10.0." in answer.words
    assert [e.outcome for e in live.snapshot().record.experiments] == ["pending"]


def test_a_run_that_nobody_asked_for_has_its_day(ann, file):
    filled = {f"design:{name}": str(value) for name, value in DESIGN.items()}
    ann.send("/add", value="2.5", **filled, **{"executed:humidity": "44"})
    [e] = Campaign.open(file).experiments
    assert (dict(e.design), dict(e.executed)) == (DESIGN, {"humidity": 44.0})
    assert "44" in ann.get("/experiments").words


def test_the_profile_has_a_curve_and_a_slider_for_it(ann, live, file):
    c = Campaign.open(file)
    for i in range(6):
        design = DESIGN | {"speed": 60.0 + 20 * i}
        c.tell(design, 1.0 + 0.1 * i, executed={"humidity": 40.0 + 3 * i})
    page = ann.get("/predict?design:humidity=60")
    assert page.forms["/predict"]["design:humidity"] == "60.0"
    assert 'aria-label="expected roughness along humidity"' in page.text
    assert 'data-for="design:humidity"' in page.text
    over_all_days = ann.get("/predict")
    assert over_all_days.forms["/predict"]["design:humidity"] == ""
    at = live.ask_models(profile, {**DESIGN, "humidity": 60.0})
    curve = next(c for c in at.curves if c.parameter == "humidity")
    expected = c.predict({**DESIGN, "humidity": 60.0}).outcomes["roughness"].mean
    near = min(range(len(curve.mean)), key=lambda i: abs(curve.positions[i] - curve.here))
    assert curve.here == pytest.approx(40 / 70)
    assert curve.mean[near] == pytest.approx(expected, abs=0.05)
