"""Beside every design that is asked for stands why, from what the models say of it."""

import json

import pytest
from typer.testing import CliRunner

from airbo.lab.advice import optimizer_from
from airbo.lab.cli.app import app
from airbo.lab.prediction import reason
from tests.lab.common import LINE, campaign, edited

pytestmark = pytest.mark.usefixtures("as_without_shape_checks", "few_draws")

SOON = edited(LINE, "n_initial = 1000", "n_initial = 3")
LIMITED = """\
name = "limited"
surrogate = "ugp"
n_initial = 3
[parameters.x]
low = 0.0
high = 1.0
uncertainty = { kind = "normal", std = 0.02 }
[parameters.solvent]
choices = ["water", "ethanol", "MeCN"]
[outcomes.yield]
goal = "maximize"
unit = "%"
[outcomes.impurity]
at_most = 0.5
probability = 0.9
unit = "%"
"""


def why(opened, design):
    """Return the reason that would stand beside a design."""
    known = opened.modelled(opened.record())
    return reason(optimizer_from(opened.settings, known), opened.settings, known, design)


@pytest.fixture
def line(tmp_path):
    with campaign(tmp_path, SOON) as opened:
        for x in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
            opened.tell({"x": x}, {"value": 10 * x}, sure=True)
        yield opened


def test_the_first_designs_spread_and_the_reason_is_kept(tmp_path):
    with campaign(tmp_path, SOON) as opened:
        [asked] = opened.ask()
    with campaign(tmp_path, SOON) as opened:
        stored = opened.experiment(asked.number).reason
    assert stored == asked.reason == "One of the first designs, which spread over the ranges."


def test_the_reason_follows_from_the_mean_and_its_doubt(line):
    assert why(line, {"x": 0.6}).startswith("Likely better than the best so far. Expected: value")
    assert why(line, {"x": 0.05}).startswith("Tells which way to go from experiment")
    assert why(line, {"x": 0.5}).startswith("Repeats experiment 5, to be sure.")


def test_a_smaller_value_is_a_reason_where_smaller_is_better(tmp_path):
    with campaign(tmp_path, f'direction = "minimize"\n{SOON}') as opened:
        for x in (0.4, 0.5, 0.6, 0.7, 0.8):
            opened.tell({"x": x}, {"value": 10 * x}, sure=True)
        assert why(opened, {"x": 0.3}).startswith("Likely better than the best so far.")
        worse = why(opened, {"x": 1.0})
        assert (
            "Little is known there: the nearest experiment, 4, differs by 20% of a range" in worse
        )


def test_limits_and_what_nobody_tried_are_reasons(tmp_path):
    with campaign(tmp_path, LIMITED) as opened:
        for x in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95):
            for solvent in ("water", "ethanol"):
                told = {"yield": 80 - 40 * x, "impurity": x}
                opened.tell({"x": x, "solvent": solvent}, told, sure=True)
        broken = why(opened, {"x": 0.9, "solvent": "water"})
        assert broken.startswith("Shows where the limits are: it may not keep impurity at most 0.5")
        assert "impurity at most 0.5 % with probability 0.0" in broken
        kept = why(opened, {"x": 0.1, "solvent": "ethanol"})
        assert "impurity at most 0.5 % with probability" in kept
        assert " %; impurity" in kept
        assert not kept.startswith("Shows where")
        untried = why(opened, {"x": 0.3, "solvent": "MeCN"})
        assert "Little is known of solvent MeCN: no experiment had it." in untried


def test_the_command_line_says_why(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["ask", "--json"])
    [asked] = json.loads(found.stdout)["asked"]
    assert "Expected: value" in asked["reason"]
    printed = CliRunner().invoke(app, ["ask"], env={"COLUMNS": "200"}).stdout
    assert "Expected: value" in printed
