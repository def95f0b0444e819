"""Constraints in a campaign file."""

import json
import warnings

import pytest
from typer.testing import CliRunner

from airbo import Campaign, TooLittleDataWarning
from airbo.lab import CampaignError, FileError
from airbo.lab.cli.app import app
from tests.lab.common import settings, write

MIXTURE = """\
name = "mixture"
surrogate = "nominal"
n_initial = 2
storage = "sqlite:///campaign.db"
constraints = ["water + ethanol + oil == 1", "ethanol <= 2 * water"]
[parameters.water]
low = 0.0
high = 1.0
[parameters.ethanol]
low = 0.0
high = 0.5
[parameters.oil]
low = 0.1
high = 1.0
uncertainty = { kind = "normal", std = 0.02 }
"""


def mistakes(text):
    with pytest.raises(FileError) as caught:
        settings(text)
    return [(m.line, m.text) for m in caught.value.mistakes]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<= 2", "<", "Constraint 'ethanol < * water': write <= instead of <; "),
        ("ethanol <=", "methanol <=", "unknown parameter 'methanol'; did you mean 'ethanol'?"),
        ("== 1", "== 5", "no design can meet it"),
        ('"ethanol <= 2 * water"', '"water >= 0.8", "ethanol >= 0.4"', "cannot|can meet these"),
        ('"ethanol <= 2 * water"', "3", "A constraint is a text"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_mistakes_in_constraints_are_named_with_their_line(old, new, message):
    [(line, text)] = mistakes(MIXTURE.replace(old, new, 1))
    assert line == 5
    assert any(part in text for part in message.split("|"))


def test_constraints_must_be_a_list():
    text = MIXTURE.replace('["water + ethanol + oil == 1", "ethanol <= 2 * water"]', '"a"')
    assert mistakes(text) == [(5, "constraints must be a list, got 'a'.")]


@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_campaign_asks_and_recommends_within_its_constraints(tmp_path):
    with Campaign.open(write(tmp_path, MIXTURE)) as campaign:
        space = campaign.settings.space
        assert space.constraints == ("water + ethanol + oil == 1", "ethanol <= 2 * water")
        for _ in range(4):
            [experiment] = campaign.ask()
            space.check(experiment.design)
            campaign.tell(experiment.number, experiment.design["ethanol"])
        outside = {"water": 0.1, "ethanol": 0.4, "oil": 0.5}
        with pytest.raises(CampaignError, match="misses the constraint 'ethanol <= 2"):
            campaign.tell(outside, 9.0)
        campaign.tell(outside, 9.0, allow_outside=True)
        for policy in ("observed", "anywhere"):
            with warnings.catch_warnings():  # whether little is known depends on the first designs
                warnings.simplefilter("ignore", TooLittleDataWarning)
                assert space.meets(campaign.recommend(policy).design)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_constraints_may_change_and_the_history_says_so(tmp_path):
    path = write(tmp_path, MIXTURE)
    with Campaign.open(path) as begun:
        begun.ask()
    path.write_text(MIXTURE.replace(', "ethanol <= 2 * water"', ""), encoding="utf-8")
    with Campaign.open(path) as campaign:
        campaign.ask()
        *_, changed, _ = campaign.history()
    assert changed.text == "the file: constraints"


def test_check_says_what_designs_meet(tmp_path):
    path = write(tmp_path, MIXTURE)
    words = ["check", str(path)]
    shown = CliRunner().invoke(app, words)
    assert "Designs meet: water + ethanol + oil == 1; ethanol <= 2 * water." in shown.output
    data = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert data["constraints"] == ["water + ethanol + oil == 1", "ethanol <= 2 * water"]
