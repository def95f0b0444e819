"""Campaigns with several outcomes: the file, what is told, and what is recommended."""

import io
import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from airbo import (
    AtLeast,
    AtMost,
    Between,
    Campaign,
    Maximize,
    Minimize,
    TooLittleDataWarning,
    measures,
)
from airbo.campaign.config import parse
from airbo.campaign.errors import AlreadyTold, CampaignError, FileError
from airbo.cli.app import app

pytestmark = pytest.mark.usefixtures("few_draws")

SEAM = """\
name = "seam"
n_initial = 3
storage = "journal:///campaign.journal"
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
            r"line 10: outcomes.a: probability must .* got 95\.0\. Write 0\.95 for 95%\.",
        ),
        (
            "[outcomes.a]\nat_most = 1\nprobability = '95%'\n",
            r"line 10: outcomes.a: probability must .* got '95%'\. Write 0\.95 for 95%\.",
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
        ("[outcomes.a]\ngoal='maximize'\n[outcomes.a_std]\nat_most = 1\n", "something else has"),
        ("[outcomes.a]\ngoal='maximize'\n[outcomes.holds]\nat_most = 1\n", "something else has"),
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


def test_what_is_measured_later_is_added_and_what_differs_is_refused(campaign):
    [asked] = campaign.ask()
    campaign.tell(asked.number, {"strength": 1.0})
    campaign.tell(asked.number, {"leak": 0.1})
    assert dict(campaign.experiment(asked.number).outcomes) == {"strength": 1.0, "leak": 0.1}
    assert campaign.tell(asked.number, {"leak": 0.1}).done == "already told"
    with pytest.raises(AlreadyTold, match=r"strength = 1\.0, leak = 0\.1"):
        campaign.tell(asked.number, {"leak": 0.3})
    campaign.tell(asked.number, {"leak": 0.3}, correct=True)
    assert dict(campaign.experiment(asked.number).outcomes) == {"strength": 1.0, "leak": 0.3}


@pytest.mark.parametrize("value", [{"leek": 0.1}, {}, 0.1, {"leak": "low"}])
def test_what_makes_no_sense_is_refused_and_nothing_lost(campaign, value):
    [asked] = campaign.ask()
    with pytest.raises(CampaignError):
        campaign.tell(asked.number, value)
    assert campaign.experiment(asked.number).is_pending


def test_the_sampler_and_the_optimizer_know_the_same(campaign):
    for i in range(5):
        campaign.tell({"x": i / 4}, {"strength": 2.0 * i, "leak": i / 4})
    campaign.tell({"x": 0.9}, {"leak": 0.9})
    from airbo.integrations.optuna import optimizer_of

    ours, theirs = campaign.optimizer(), optimizer_of(campaign.study)
    assert ours.outcomes == theirs.outcomes == {"strength": Maximize(), "leak": AtMost(0.5, 0.9)}
    assert ours.observations.equals(theirs.observations)
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
        with pytest.raises(FileError, match="none of the outcomes 'strength', 'leak'"):
            other.import_table(campaign.export()[["x", "status"]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("x,strength,leak,status\n0.1,1,,failed\n", "strength is '1', but the status is 'failed'"),
        ("x,strength,leak\n0.1,nan,1\n", "leave the cell empty"),
        ("x,strength,leak\n0.1,95%,1\n", "strength must be a number, got '95%'"),
        ("x,strength,leak\n0.1,1,0.1\n0.2,1,bad\n", "line 3: leak must be a number"),
        ("x,strength,strength\n0.1,1,2\n", "two columns 'strength'"),
        ("x,strength (psi)\n0.1,1\n", "in 'psi', and the campaign file says 'MPa'"),
        ("x,strength,leek\n0.1,1,0.1\n", "did you mean 'leak'"),
        ("x,value\n0.1,1\n", "none of the outcomes"),
    ],
)
def test_a_table_with_a_mistake_is_refused_whole(campaign, tmp_path, rows, message):
    (tmp_path / "rows.csv").write_text(rows)
    with pytest.raises(FileError, match=message):
        campaign.import_table(tmp_path / "rows.csv")
    assert campaign.experiments == []
    assert [*campaign.export()][2:4] == ["strength", "leak"]


# -- on the command line


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
    assert "did you mean 'leak'" in airbo("tell", "0", "leek=1").output
    said = " ".join(airbo("tell", "0", "1").output.split())
    assert "Please write: airbo tell 3 strength=1.25 leak=1.25" in said
    said = " ".join(airbo("fail", "--infeasible", "0", "--correct").output.split())
    assert "its design cannot be used" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["0", "strength=1", "strength=2"], "'strength' is named twice: which one counts?"),
        (["0", "strength=nan"], "got 'nan'. Leave out what was not measured."),
        (["0", "strength=1 MPa"], "Outcome 'strength' must be a number, got '1 MPa'."),
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
        is_named = opened.settings.named is not None
        told = [({"x": i / 10}, {"strength": i / 10} if is_named else i / 10) for i in range(11)]
        opened.tell_all(told)
    return json.loads(airbo("recommend", "--json").stdout), airbo("status").output


@pytest.mark.parametrize("measure", ["in-spec:..0.8", "cvar:0.9", "mean"])
def test_a_single_outcome_is_recommended_as_a_value_without_a_name(airbo, measure):
    named, said = recommended_data(airbo, f'{ONE}measure = "{measure}"\n')
    head = ONE[: ONE.index("[parameters")].replace("campaign.journal", "other.journal")
    value = '[value]\nname = "strength"\nunit = "MPa"\n'
    rest = ONE[ONE.index("[parameters") : ONE.index("[outcomes")]
    plain, also = recommended_data(airbo, f'{head}measure = "{measure}"\n{rest}{value}')
    assert named.pop("outcomes").keys() == {"strength"}
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
    assert f"{quality['ppm']:,.0f} ppm out of spec" in said
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
    ran = airbo("run", "--command", "echo strength={x} leak=0.1", "--budget", "2", "--json")
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
    table = pd.read_csv(io.StringIO(two("front", "-o", "-").stdout))
    assert list(table["x"]) == designs
    assert {"strength", "strength_std", "cost_within", "holds"} <= set(table.columns)
    said = two("front").output
    assert said.count("compromise") == 2  # in its row, and in the sentence below
    assert "Wrote" in two("front", "-o", "front.xlsx").output


def test_one_objective_has_no_front(airbo):
    done = airbo("front")
    assert done.exit_code == 1
    assert "one objective, strength" in " ".join(done.output.split())
