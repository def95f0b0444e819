"""Campaigns with several outcomes on the command line."""

import json
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airbo import (
    Campaign,
    TooLittleDataWarning,
)
from airbo.lab.cli.app import app
from airbo.words import ppm
from tests.lab.test_outcomes import SEAM

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def airbo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaign.toml").write_text(SEAM)

    def run(*words):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)
            return CliRunner().invoke(app, list(words))

    return run


def test_outcomes_are_told_by_name(airbo):
    assert "strength=VALUE leak=VALUE" in airbo("ask").output
    assert "strength = 1 MPa, leak = 0.1" in airbo("tell", "0", "strength=1", "leak=0.1").output
    added = json.loads(airbo("tell", "x=0.2", "leak=0.2", "--json").stdout)["told"][0]
    assert (added["outcomes"], added["value"]) == ({"leak": 0.2}, None)
    assert "Experiment 1 waits for a measurement: strength." in airbo("status").output
    later = airbo("tell", str(added["trial"]), "strength=2").output
    assert "leak = 0.2, strength = 2 MPa" in later
    assert "Changed" not in later  # it was measured later, and nothing was corrected
    assert "did you mean 'leak'" in airbo("tell", "0", "leek=1").output
    said = " ".join(airbo("tell", "0", "1").output.split())
    assert "Please write: airbo tell 3 strength=1.25 leak=1.25" in said
    said = " ".join(airbo("fail", "--infeasible", "0", "--correct").output.split())
    assert "its design cannot be used" in said


def test_the_hint_after_ask_can_be_pasted_into_a_shell(airbo):
    Path("campaign.toml").write_text(SEAM.replace("outcomes.strength", 'outcomes."shear & peel"'))
    asked = airbo("ask").output
    assert "tell 0 'shear & peel=VALUE' leak=VALUE " in " ".join(asked.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["0", "strength=1", "strength=2"], "'strength' is named twice: which one counts?"),
        (["0", "strength=nan"], "got 'nan'. Leave out what was not measured."),
        (["0", "strength=1 kPa"], "strength must be a number, got '1 kPa'."),
        (["0", "feasible=0"], "Unknown name 'feasible'"),
        (["x=0.2", "x=0.3", "leak=1"], "'x' is named twice"),
        (["x=0.2"], "Please write: airbo tell 3 strength=1.25 leak=1.25"),
    ],
)
def test_a_report_that_makes_no_sense_is_answered_in_one_sentence(airbo, words, message):
    done = airbo("tell", *words)
    assert done.exit_code == 1
    assert message in " ".join(done.output.split())
    assert isinstance(done.exception, SystemExit)


def test_nothing_is_recommended_before_every_outcome_was_measured(airbo):
    assert "no experiment gave a value" in airbo("recommend").output
    airbo("tell", "x=0.2", "strength=1")
    done = airbo("recommend")
    assert done.exit_code == 1
    assert "no experiment measured 'leak'" in " ".join(done.output.split())


def test_a_single_outcome_is_recommended_with_its_name(airbo, tmp_path):
    (tmp_path / "campaign.toml").write_text(SEAM[: SEAM.index("[outcomes.leak]")])
    for x in ("0.2", "0.8"):
        airbo("tell", f"x={x}", f"strength={x}")
    found = json.loads(airbo("recommend", "--json").stdout.splitlines()[-1])
    assert 0.2 < found["outcomes"]["strength"]["mean"] < 0.8
    assert "strength: 0." in airbo("recommend").output


ONE = SEAM[: SEAM.index("[outcomes.leak]")]


def recommended_data(airbo, text):
    """Return what programs read of the same experiments, and what status says, under a file."""
    Path("campaign.toml").write_text(text)
    with Campaign.open() as opened:
        told = [({"x": i / 10}, {"strength": i / 10}) for i in range(11)]
        opened.tell_all(told)
    return json.loads(airbo("recommend", "--json").stdout), airbo("status").output


@pytest.mark.parametrize("measure", ["in-spec:..0.8", "cvar:0.9", "mean"])
def test_a_single_outcome_is_recommended_as_a_value_without_a_name(airbo, measure):
    named, said = recommended_data(airbo, f'{ONE}measure = "{measure}"\n')
    head = ONE[: ONE.index("[parameters")].replace("campaign.db", "other.db")
    value = '[value]\nname = "strength"\nunit = "MPa"\n'
    rest = ONE[ONE.index("[parameters") : ONE.index("[outcomes")]
    plain, also = recommended_data(airbo, f'{head}measure = "{measure}"\n{rest}{value}')
    assert named == plain
    assert ("capability" in named) == measure.startswith("in-spec")
    assert ("outlook" in named) == (measure == "mean")
    for status in (said, also):
        assert ("more experiments can bring" in status) == (measure == "mean")


def test_status_promises_no_outlook_where_there_are_limits(airbo):
    airbo("tell", "x=0.2", "strength=1", "leak=0.1")
    assert "more experiments can bring" not in airbo("status").output


def test_a_single_outcome_with_a_design_that_cannot_be_used_is_a_compromise(airbo):
    Path("campaign.toml").write_text(ONE)
    for x in ("0.2", "0.5", "0.8"):
        airbo("tell", f"x={x}", f"strength={x}")
    airbo("ask")
    airbo("fail", "3", "--infeasible")
    found = json.loads(airbo("recommend", "--json").stdout.splitlines()[-1])
    assert found["outcomes"].keys() == {"strength", "feasible"}
    assert "more experiments can bring" not in airbo("status").output


def test_recommend_shows_limits_with_their_probabilities(airbo):
    with Campaign.open() as opened:
        told = [({"x": i / 20}, {"strength": i / 10, "leak": i / 20}) for i in range(21)]
        opened.tell_all(told)
    said = airbo("recommend").output
    assert "Use x = 0.4" in said
    said = " ".join(said.split())
    assert "Required: leak at most 0.5 for 90% of executed inputs. Expect 9" in said
    data = json.loads(airbo("recommend", "--json").stdout)
    quality = data["outcomes"]["leak"]["capability"]
    assert f"Cpk {quality['cpk']:.2f} (" in said
    assert f"{ppm(quality['ppm'])} ppm out of spec" in said
    assert quality["share_interval"][0] <= quality["share"] <= quality["share_interval"][1]
    assert quality["share"] == data["outcomes"]["leak"]["within"]
    assert data["outcomes"]["strength"]["capability"] is None
    assert data["outcomes"]["leak"]["holds"] == data["holds"] >= 0.9
    assert data["design"] == {"x": 0.4}
    low, high = data["operating_window"]["alone"]["x"]
    assert low == 0 < 0.4 <= high < 0.5
    assert [b["outcome"] for b in data["tolerance_budgets"]] == ["leak"]
    assert airbo("report", "--output", "page.html").exit_code == 0
    assert "Operating window" in Path("page.html").read_text(encoding="utf-8")


def test_check_says_what_is_wanted(airbo):
    said = " ".join(airbo("check").output.split())
    assert "strength as large as possible; leak at most 0.5 for 90% of executed inputs" in said


def test_the_report_shows_all_outcomes(airbo):
    for x in ("0.2", "0.8"):
        airbo("tell", f"x={x}", f"strength={x}", "leak=0.1")
    assert airbo("report").exit_code == 0
    page = Path("campaign.html").read_text(encoding="utf-8")
    assert "strength" in page
    assert "leak" in page


def test_a_program_gives_several_outcomes(airbo):
    ran = airbo(
        "run", "--command", """echo '{{"strength": {x}, "leak": 0.1}}'""", "--budget", "2", "--json"
    )
    done = json.loads(ran.stdout.splitlines()[-1])["done"]
    with Campaign.open() as opened:
        assert [dict(e.outcomes) for e in opened.experiments] == [d["outcomes"] for d in done]
        assert all(e.outcomes["strength"] == e.design["x"] for e in opened.experiments)


# -- two objectives


@pytest.fixture
def two(airbo, tmp_path):
    """A campaign in which strength and leak grow with x; x = 0.95 breaks the limit of cost."""
    limit = '[outcomes.leak]\ngoal = "minimize"\n[outcomes.cost]\nat_most = 2\n'
    (tmp_path / "campaign.toml").write_text(SEAM[: SEAM.index("[outcomes.leak]")] + limit)
    with Campaign.open() as opened:
        told = [({"x": x}, {"strength": 9 * x, "leak": x**2, "cost": 2.5 * x})
                for x in (0.05, 0.2, 0.35, 0.5, 0.95)]  # fmt: skip
        opened.tell_all(told)
    return airbo


def test_the_front_lists_designs_that_keep_the_limits_the_best_by_the_first_objective_first(two):
    found = json.loads(two("front", "--json").stdout)
    designs = [each["design"]["x"] for each in found["front"]]
    assert designs == sorted(designs, reverse=True)
    assert set(designs) < {0.05, 0.2, 0.35, 0.5, 0.95}
    assert 0.95 not in designs
    assert found["compromise"]["x"] in designs
    said = two("front").output
    assert said.count("compromise") == 2  # in its row, and in the sentence below


def test_one_objective_has_no_front(airbo):
    done = airbo("front")
    assert done.exit_code == 1
    assert "one objective, strength" in " ".join(done.output.split())
