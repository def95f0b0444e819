"""What to expect at settings of a visitor's choice, and curves that go through them."""

from urllib.parse import urlencode

import numpy as np
import pytest

from airbo.lab import Campaign
from airbo.lab.prediction import sentences
from airbo.lab.serve.jobs import JobError
from airbo.lab.serve.models import profile
from tests.lab.common import MILL, write

pytestmark = pytest.mark.usefixtures("few_draws")

DESIGN = {"speed": 120.0, "depth": 0.5, "passes": 2, "tool": "B"}
AT = {f"design:{name}": str(value) for name, value in DESIGN.items()}


@pytest.fixture
def file(tmp_path):
    path = write(tmp_path, MILL)
    with Campaign.open(path) as campaign:
        for i, speed in enumerate((60.0, 90.0, 130.0, 170.0)):
            told = {**DESIGN, "speed": speed, "tool": "AB"[i % 2]}
            campaign.tell(told, {"roughness": 1.0 + i}, sure=True)
    return path


def test_the_page_says_what_the_campaign_predicts(ann, file):
    with Campaign.open(file) as campaign:
        found = campaign.adviser().predict(DESIGN)
        expected = sentences(campaign.settings, found)
    page = ann.get(f"/predict?{urlencode(AT)}")
    assert page.status == 200
    for sentence in expected:
        assert sentence in page.words
    assert page.forms["/predict"] | AT == page.forms["/predict"]


def test_without_settings_it_is_about_the_recommended_design(ann, file):
    with Campaign.open(file) as campaign:
        best = campaign.recommend().design
    form = ann.get("/predict").forms["/predict"]
    assert {name.removeprefix("design:"): text for name, text in form.items()} == {
        name: str(value) for name, value in best.items()
    }


def test_every_curve_goes_through_the_prediction(file):
    with Campaign.open(file) as campaign:
        found = profile(campaign.adviser(), DESIGN)
        expected = campaign.adviser().predict(DESIGN).outcomes["roughness"]
    assert [curve.parameter for curve in found.curves] == list(DESIGN)
    for curve in found.curves:
        middle, low, high = (
            np.interp(curve.here, curve.positions, v) for v in (curve.mean, curve.low, curve.high)
        )
        assert middle == pytest.approx(expected.mean, abs=0.02)
        assert (low, high) == pytest.approx(expected.interval, abs=0.05)


def test_what_cannot_be_read_is_said_beside_its_field_and_kept(ann):
    page = ann.get(f"/predict?{urlencode(AT | {'design:speed': 'fast'})}")
    assert page.status == 422
    assert page.forms["/predict"]["design:speed"] == "fast"
    assert "Correct the entries first." in page.words
    outside = ann.get(f"/predict?{urlencode(AT | {'design:speed': '900'})}")
    assert "900" in " ".join(outside.said("mistake"))


def test_a_new_result_changes_the_answer(ann, live, file):
    before = ann.get(f"/predict?{urlencode(AT)}").words
    assert ann.get(f"/predict?{urlencode(AT)}").words == before
    with Campaign.open(file) as campaign:
        campaign.tell(DESIGN, {"roughness": 9.0}, sure=True)
    assert ann.get(f"/predict?{urlencode(AT)}").words != before


def test_a_process_that_fails_is_said_and_begun_again(ann, live, monkeypatch):
    def broken(path, pipe, report):
        raise JobError("It broke.")

    with monkeypatch.context() as patched:
        patched.setattr("airbo.lab.serve.models.answer_questions", broken)
        assert "went wrong inside airbo" in ann.get("/predict").words
    assert "What to expect" in ann.get("/predict").words
