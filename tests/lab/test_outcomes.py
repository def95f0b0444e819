"""Campaigns with several outcomes: the file, what is told, and what is recommended."""

import pandas as pd
import pytest

from airbo import (
    AtLeast,
    AtMost,
    Between,
    Campaign,
    Maximize,
    Minimize,
    measures,
)
from airbo.lab.errors import AlreadyTold, CampaignError, FileError
from airbo.lab.file import parse

pytestmark = pytest.mark.usefixtures("few_draws")

SEAM = """\
name = "seam"
n_initial = 3
storage = "sqlite:///campaign.db"
[parameters.x]
low = 0.0
high = 1.0
uncertainty = { kind = "normal", std = 0.05 }
[outcomes.strength]
goal = "maximize"
unit = "MPa"
[outcomes.leak]
at_most = 0.5
probability = 0.9
"""


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "campaign.toml").write_text(SEAM)
    with Campaign.open(tmp_path / "campaign.toml") as opened:
        yield opened


def outcomes_of(text, tmp_path):
    head = SEAM[: SEAM.index("[outcomes")]
    return parse(head + text, tmp_path / "campaign.toml").outcomes


def test_the_file_says_what_is_wanted_of_each_outcome(tmp_path):
    text = """\
[outcomes.a]
goal = "minimize"
measure = "cvar:0.8"
[outcomes.b]
at_least = 1
[outcomes.c]
at_least = 1
at_most = 2
probability = 0.5
"""
    assert outcomes_of(text, tmp_path) == {
        "a": Minimize(measures.CVaR(0.8)),
        "b": AtLeast(1),
        "c": Between(1, 2, probability=0.5),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[outcomes.a]\nunit = 'mm'\n", "needs either goal"),
        ("[outcomes.a]\ngoal = 'maximize'\nat_most = 1\n", "needs either goal"),
        ("[outcomes.a]\ngoal = 'largest'\n", "goal must be one of"),
        ("[outcomes.a]\ngoal = 'maximize'\nprobability = 0.9\n", "belongs to a limit"),
        ("[outcomes.a]\nat_most = 1\nmeasure = 'mean'\n", "belongs to a goal"),
        (
            "[outcomes.a]\nat_most = 1\nat_least = 2\n",
            "at_least must be below at_most, got 2 and 1",
        ),
        (
            "[outcomes.a]\nat_most = 1\nprobability = 95.0\n",
            r"line 10: outcomes.a: probability must .* got 95\.0\.",
        ),
        (
            "[outcomes.a]\nat_most = 1\nprobability = '95%'\n",
            r"line 10: outcomes.a: probability must .* got '95%'\.",
        ),
        ("[outcomes.a]\nat_most = 1\nprobability = nan\n", "between 0 and 1, .* got nan"),
        ("[outcomes.a]\nat_most = '1 mm'\n", "a mistake:.*at_most must be a number, got '1 mm'"),
        ("[outcomes.a]\nat_most = inf\n", ": at_most must be finite, got inf"),
        (
            "[outcomes.a]\nat_most = 1e300\n",
            ": at_most must not exceed 1e\\+100 in size, got 1e\\+300",
        ),
        (
            "[outcomes.a]\nat_most = 1\nprobability = 0.9999\n",
            "outcomes.a: probability must not exceed 0.999",
        ),
        (
            "[outcomes.a]\ngoal = 'maximize'\nmeasure = 'cvar:95'\n",
            "line 10: outcomes.a: measure: level must .*between 0 and 1",
        ),
        ("[outcomes.a]\ngoal = 'maximize'\nmeasure = 'cvar:95%'\n", "Write 0.95 for 95%"),
        ("[outcomes]\n", "outcomes is empty"),
        ("[outcomes.-a]\ngoal = 'maximize'\n", "airbo tell could not read it"),
        ('[outcomes."a\\nb"]\ngoal = "maximize"\n', "airbo tell could not read it"),
        ("[outcomes.a]\nat_most = 1\n", "one to 3 outcomes need a goal .*, got 0"),
        ("[outcomes.x]\ngoal = 'maximize'\n", "something else has that name"),
        ("[outcomes.a]\ngoal = 'maximize'\nlimit = 3\n", "limit"),
    ],
)
def test_mistakes_in_the_outcomes_are_named(text, message, tmp_path):
    with pytest.raises(FileError, match=f"(?s){message}"):
        outcomes_of(text, tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [('acquisition = "ei"', "leave acquisition out"), ('surrogate = "nominal"', "no model of f")],
)
def test_what_does_not_go_with_limits_is_said_by_check(line, message, tmp_path):
    with pytest.raises(FileError, match=message):
        parse(f"{line}\n{SEAM}", tmp_path / "campaign.toml").check()


def test_a_direction_for_all_outcomes_is_refused(tmp_path):
    with pytest.raises(FileError, match="line 2: remove 'direction'"):
        parse('\ndirection = "minimize"\n' + SEAM, tmp_path / "campaign.toml")


def test_outcomes_are_kept_and_told_to_the_model(campaign):
    campaign.tell({"x": 0.1}, {"strength": 1.0, "leak": 0.1})
    campaign.tell({"x": 0.2}, {"leak": 0.2})
    campaign.tell({"x": 0.3}, None)
    campaign.fail({"x": 0.4}, infeasible=True)
    found = campaign.experiments
    assert [e.outcome for e in found] == ["ok", "ok", "failed", "failed"]
    assert [dict(e.outcomes) for e in found[:2]] == [{"strength": 1.0, "leak": 0.1}, {"leak": 0.2}]
    table = campaign.optimizer().observations
    assert table["status"].tolist() == ["ok", "ok", "failed", "infeasible"]
    assert table["leak"].tolist()[:2] == [0.1, 0.2]
    assert campaign.status().n_ok == 2


def test_what_still_lacks_a_measurement_is_listed(campaign):
    campaign.tell({"x": 0.1}, {"strength": 1.0, "leak": 0.1})
    campaign.tell({"x": 0.2}, {"strength": 2.0})
    campaign.tell({"x": 0.3}, None)
    waiting = campaign.status().waiting
    assert [(e.number, missing) for e, missing in waiting] == [(1, ["leak"])]
    campaign.tell(1, {"leak": 0.2})
    assert campaign.status().waiting == []


def test_what_is_measured_later_is_added_and_what_differs_is_refused(campaign):
    [asked] = campaign.ask()
    campaign.tell(asked.number, {"strength": 1.0})
    campaign.tell(asked.number, {"leak": 0.1})
    assert dict(campaign.experiment(asked.number).outcomes) == {"strength": 1.0, "leak": 0.1}
    assert campaign.tell(asked.number, {"leak": 0.1}).done == "already told"
    with pytest.raises(AlreadyTold, match=r"strength = 1 MPa, leak = 0\.1"):
        campaign.tell(asked.number, {"leak": 0.3})
    campaign.tell(asked.number, {"leak": 0.3}, correct=True)
    assert dict(campaign.experiment(asked.number).outcomes) == {"strength": 1.0, "leak": 0.3}


@pytest.mark.parametrize("value", [{"leek": 0.1}, {}, 0.1, {"leak": "low"}])
def test_what_makes_no_sense_is_refused_and_nothing_lost(campaign, value):
    [asked] = campaign.ask()
    with pytest.raises(CampaignError):
        campaign.tell(asked.number, value)
    assert campaign.experiment(asked.number).is_pending


def test_the_optimizer_wants_what_the_file_wants(campaign):
    for i in range(5):
        campaign.tell({"x": i / 4}, {"strength": 2.0 * i, "leak": i / 4})
    campaign.tell({"x": 0.9}, {"leak": 0.9})
    known = campaign.optimizer()
    assert known.outcomes == {"strength": Maximize(), "leak": AtMost(0.5, 0.9)}
    assert known.observations["strength"].tolist()[:5] == [0.0, 2.0, 4.0, 6.0, 8.0]
    [asked] = campaign.ask()
    assert 0 <= asked.design["x"] <= 1


def test_only_a_failed_experiment_can_be_infeasible(campaign):
    [asked] = campaign.ask()
    with pytest.raises(
        CampaignError, match="experiments that failed; this one has outcomes: 'leak'"
    ):
        campaign.tell_all([(asked.number, {"leak": 0.1})], infeasible=True)
    assert campaign.experiment(asked.number).is_pending


def test_tables_that_differ_in_what_cannot_be_used_are_two(campaign):
    table = pd.DataFrame({"x": [0.1], "leak": [None], "status": ["failed"]})
    assert not campaign.import_table(table).already
    assert not campaign.import_table(table.assign(status="infeasible")).already
    assert campaign.import_table(table.assign(status="infeasible")).already


@pytest.mark.parametrize("name", ["by", "notes", "excluded"])
def test_an_export_keeps_an_outcome_that_is_called_like_a_column_of_airbo(tmp_path, name):
    path = tmp_path / "campaign.toml"
    path.write_text(SEAM.replace("leak", name))
    with Campaign.open(path) as opened:
        opened.tell({"x": 0.1}, {"strength": 1.0, name: 0.25})
        table = opened.export()
        assert table[name].tolist() == [0.25]
        opened.undo()
        opened.import_table(table)
        assert dict(opened.experiments[-1].outcomes) == {"strength": 1.0, name: 0.25}


def test_an_export_has_a_column_for_each_outcome(campaign):
    campaign.tell({"x": 0.1}, {"strength": 1.0, "leak": 0.1})
    campaign.tell({"x": 0.2}, {"leak": 0.2})
    campaign.fail({"x": 0.4}, infeasible=True)
    table = campaign.export()
    assert [*table][:5] == ["trial", "x", "strength", "leak", "status"]
    assert table["status"].tolist() == ["ok", "ok", "infeasible"]
    assert table["leak"].tolist()[:2] == [0.1, 0.2]


def test_what_was_exported_can_be_imported(campaign, tmp_path):
    campaign.tell({"x": 0.1}, {"strength": 1.0, "leak": 0.1})
    campaign.tell({"x": 0.2}, {"leak": 0.2})
    campaign.tell({"x": 0.3}, None)
    campaign.fail({"x": 0.4}, infeasible=True)
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "campaign.toml").write_text(SEAM)
    with Campaign.open(folder / "campaign.toml") as other:
        other.import_table(campaign.export())
        assert other.optimizer().observations.equals(campaign.optimizer().observations)
        with pytest.raises(FileError, match="no column 'strength or leak'"):
            other.import_table(campaign.export()[["x", "status"]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("x,strength,leak,status\n0.1,1,,failed\n", "strength is '1', but the status is 'failed'"),
        ("x,strength,leak\n0.1,nan,1\n", "strength must be a finite number"),
        ("x,strength,leak\n0.1,95%,1\n", "strength must be a number, got '95%'"),
        ("x,strength,leak\n0.1,1,0.1\n0.2,1,bad\n", "line 3: leak must be a number"),
        ("x,strength,strength\n0.1,1,2\n", "columns 'strength', 'strength' for 'strength'"),
        ("x,strength (psi)\n0.1,1\n", "in 'psi', and the campaign file says 'MPa'"),
        ("x,strength,leek\n0.1,1,0.1\n", "did you mean 'leak'"),
        ("x,value\n0.1,1\n", "no column"),
    ],
)
def test_a_table_with_a_mistake_is_refused_whole(campaign, tmp_path, rows, message):
    (tmp_path / "rows.csv").write_text(rows)
    with pytest.raises(FileError, match=message):
        campaign.import_table(tmp_path / "rows.csv")
    assert campaign.experiments == []
    assert [*campaign.export()][2:4] == ["strength", "leak"]
