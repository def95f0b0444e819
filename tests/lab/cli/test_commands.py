"""The commands: what they print for people and programs, and how they end."""

import json
import re
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

import airbo
from airbo.lab.cli.app import app
from airbo.lab.cli.experiments import AS_CTRL_C, report_in
from tests.lab.cli.common import airbo_, data
from tests.lab.common import LINE, MILL, edited, settings, write

SPACE = settings(MILL).space


pytestmark = pytest.mark.usefixtures("here")


def test_a_day_in_json(here):
    write(here, MILL)
    assert data("check")["name"] == "milling"
    asked = data("ask", "-n", 3)["asked"]
    assert [e["trial"] for e in asked] == [0, 1, 2]
    assert data("tell", 0, -1.5, "--executed", "speed=101")["told"][0]["executed"] == {"speed": 101}
    assert data("tell", "1=2.5")["told"][0]["done"] == "told"
    assert data("tell", "1=2.5")["told"][0]["done"] == "already told"
    assert data("tell", 1, 3, "--correct")["told"][0]["done"] == "corrected"
    assert data("fail", 2)["told"][0]["outcome"] == "failed"
    added = data("tell", "speed=120", "depth=0.5", "passes=2", "tool=B", "-7e-1")["told"][0]
    assert (added["value"], added["done"]) == (-0.7, "added")
    now = data("status")
    assert (now["ok"], now["failed"], now["pending"]) == (3, 1, [])
    assert now["best_observed"]["value"] == -1.5
    best = data("recommend")
    keys = {"mean", "std", "unit", "measure", "outlook"}
    assert set(best) == keys | {"design", "outcomes", "holds", "reason", "caution"}
    assert best["outlook"]["gains"].keys() == {"5", "10", "20"}
    assert best["unit"] == "µm"
    rows = data("export")["experiments"]
    assert [r["value"] for r in rows] == [-1.5, 3, None, -0.7]
    airbo_("export", "-o", "all.csv")
    other = here / "other"
    other.mkdir()
    write(other, MILL)
    assert len(data("import", "all.csv", "-f", other / "campaign.toml")["imported"]) == 4
    assert data("import", "all.csv", "-f", other / "campaign.toml")["already"] is True


def test_damage_is_named_and_rescued_and_a_backup_takes_its_place(here):
    write(here)
    airbo_("tell", "x=0.25", 1.5)
    airbo_("tell", "x=0.5", 2.5)
    assert "3 events, all as they were written" in airbo_("check", "--data").stdout
    assert data("check", "--data")["events"] == 3
    assert data("backup", "copy.db")["events"] == 3
    with closing(sqlite3.connect(here / "campaign.db")) as database:
        database.execute("UPDATE event SET body = replace(body, '2.5', '3.5') WHERE seq = 3")
        database.commit()
    for command in (["status"], ["check", "--data"], ["tell", 1, 7], ["ask"], ["export"]):
        told = airbo_(*command, code=4)
        assert "event 3 was changed" in " ".join(told.output.split())
    told = airbo_("export", "--damaged", "-o", "rescued.csv")
    assert "Wrote 1 experiment to rescued.csv." in told.output
    assert "2 events can be read; 1 is lost or was changed" in told.output
    assert [r["value"] for r in data("export", "--damaged")["experiments"]] == [1.5]
    changes = data("export", "--damaged", "--history")["changes"]
    assert [change["what"] for change in changes] == ["begun", "added"]
    said = airbo_("export", "--damaged", "--history", "-o", "changes.csv").output
    assert "Wrote 2 changes to changes.csv." in said
    (here / "copy.db").replace(here / "campaign.db")
    assert [r["value"] for r in data("export")["experiments"]] == [1.5, 2.5]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["0", "-inf"],
            "value must be a finite number, got '-inf'. For an experiment that gave",
        ),
        (["0", "-nan"], "value must be a finite number, got '-nan'."),
        (["0=-inf"], "must be a finite number, got '-inf'."),
        (["²", "5"], "This is not understood: '² 5'. Please write"),
        (["²=5"], "Unknown name '²'"),
        (["9" * 30, "5"], "This is not understood"),
        (["0", "-5f"], "value must be a number, got '-5f'."),
    ],
)
def test_words_that_are_no_numbers_are_refused_in_words(here, words, message):
    write(here)
    assert message in " ".join(airbo_("tell", *words, code=1).output.split())


def test_people_read_units(here):
    write(here, MILL)
    assert "speed [m/min]" in airbo_("ask").stdout
    assert "roughness [µm]" in airbo_("check").stdout
    assert "normal, standard deviation 2 m/min" in airbo_("check").stdout
    assert "Experiment 0: 1.25 µm." in airbo_("tell", 0, 1.25).stdout
    assert re.search(r"speed = [\d.]+ m/min", airbo_("status").stdout)
    told = airbo_("recommend")
    assert re.search(r"Expected roughness: [\d.]+ ± [\d.]+ µm", told.stdout)
    assert "cannot tell this design from the others" in told.stderr.replace("\n", " ")


def test_check_draws_the_uncertainty(here):
    write(here, MILL)
    printed = airbo_("check").stdout
    assert "█" in printed
    assert "121.1 m/min" in printed
    write(here, edited(LINE, "std = 0.05", "std = 0.05, clip_low = 0.0"))
    lands = data("check")["lands"]
    assert [w["asked"] for w in lands] == [0.0, 0.5, 1.0]
    assert lands[0]["quantiles"]["0.025"] == 0.0


def test_check_draws_the_uncertainty_whole_in_a_narrow_terminal(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    write(here, MILL)
    lines = airbo_("check").stdout.splitlines()
    drawn = [line for line in lines if "█" in line]
    assert drawn
    assert all(len(re.findall("[▁▂▃▄▅▆▇█]", line)) > 16 for line in drawn)
    assert "…" not in "".join(lines)


def test_check_does_not_begin_a_campaign(here):
    write(here, LINE)
    airbo_("check")
    assert not (here / "campaign.db").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["status", "-f", "none.toml"], 4, "There is no campaign file none.toml"),
        (["tell", "7", "1"], 1, "There is no experiment 7"),
        (["tell", "0", "nan"], 1, "finite number, got 'nan'. For an experiment that gave no value"),
        (["tell", "0", "inf"], 1, "finite number, got 'inf'"),
        (["tell", "0", "1,5,2"], 1, "Write a decimal point, not a comma"),
        (["tell", "0", "1,250"], 1, "1,250 can mean 1.250 or 1250. Write one of them."),
        (["tell", "0"], 1, "not understood"),
        (["tell", "x=2", "1"], 1, "must be between 0 and 1"),
        (["tell", "y=2", "1"], 1, "Unknown name 'y'"),
        (["tell", "0", "1", "--executed", "x"], 1, "name=value"),
        (["tell", "0", "1", "--uncertainty", "x ="], 3, "not valid TOML"),
        (["fail", "-1"], 2, "No such option"),
        (["ask", "-n", "0"], 2, "greater than or equal to 1"),
        (["recommend"], 1, "nothing to recommend yet"),
        (["report"], 1, "nothing to report yet"),
        (["import", "none.csv"], 4, "none.csv cannot be read"),
        (["export", "-o", "no/where.csv"], 4, "cannot be written"),
        (["run", "--command", "do {y}", "--budget", "3"], 1, "there are {x}"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_what_is_not_possible_is_said_in_one_paragraph(here, words, code, message):
    write(here, LINE)
    result = airbo_(*words, code=code)
    assert message in re.sub(r"[\s│]+", " ", result.stderr)
    assert result.stdout == ""
    if code != 2:
        said = json.loads(airbo_(*words, "--json", code=code).stdout)
        assert message in said["error"]
        assert said["exit_code"] == code


def test_mistakes_are_listed_for_programs(here):
    write(here, edited(edited(LINE, "std", "sd"), "low = 0.0", "low = 5"))
    assert [m["line"] for m in data("check", code=3)["mistakes"]] == [6, 9]
    assert "line 9: " in airbo_("check", code=3).stderr


# -- run, help


def test_run_shows_each_experiment_where_there_is_no_terminal(here):
    write(here, LINE)
    result = airbo_("run", "--command", "echo {x}", "--budget", 3)
    assert re.findall(r"^(\d)/3  \d: x = [\d.]+ mm → ", result.stderr, re.MULTILINE) == list("123")
    assert "Done: 3 experiments here, 0 of them failed." in result.stdout
    assert data("run", "--command", "echo {x}", "--budget", 4)["done"][0]["trial"] == 3


@pytest.mark.parametrize("ending", ["TERM", "HUP"])
def test_a_run_that_is_asked_to_end_takes_its_command_with_it(here, ending):
    write(here, LINE)
    endings = [getattr(signal, name) for name in AS_CTRL_C]
    before = [signal.getsignal(number) for number in endings]
    command = f"sh -c 'kill -{ending} $PPID; sleep 88.8'"
    result = airbo_("run", "--command", command, "--budget", 1, code=130)
    assert "Interrupted. Everything that you reported is stored." in result.stderr
    assert "sleep 88.8" not in subprocess.run(["ps", "-ax"], capture_output=True, text=True).stdout
    assert data("status")["given_up"] == 1
    assert [signal.getsignal(number) for number in endings] == before


def test_every_command_has_help_with_examples_and_json():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert len(names) >= 18
    for name in names:
        text = airbo_(name, "--help").stdout
        assert f"airbo {name}" in text.split("Examples:")[1]
        assert "--json" in text
    assert airbo_("--version").stdout == f"airbo {airbo.__version__}\n"


def plain(report):
    """What a report says, where there is one value."""
    return [(what, outcomes["value"]) for what, outcomes in report[0]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("3 1.25", [(3, 1.25)]),
        ("3 -1e-3", [(3, -0.001)]),
        ("3 55,4", [(3, 55.4)]),
        ("3 62.1%", [(3, 62.1)]),
        ("3=55,4 4=−2", [(3, 55.4), (4, -2.0)]),
        ("speed=60,5m/min depth=1,5 1,5", [({"speed": 60.5, "depth": 1.5}, 1.5)]),
        ("3=1 4=-2", [(3, 1.0), (4, -2.0)]),
        ("3 value=1.25", [(3, 1.25)]),
        ("value=1 3", [(3, 1.0)]),
        ("value=1.5 speed=60 tool=A", [({"speed": 60.0, "tool": "A"}, 1.5)]),
        ("1.5 speed=60 depth=1 passes=2 tool=A",
         [({"speed": 60.0, "depth": 1.0, "passes": 2, "tool": "A"}, 1.5)]),
    ],
)  # fmt: skip
def test_words_of_tell(words, expected):
    assert plain(report_in(words.split(), SPACE, {"value": "%"})) == expected


def test_words_of_tell_with_another_design_than_asked():
    report = report_in(["3", "speed=91", "tool=A", "1.5"], SPACE, {"value": "%"})
    assert (plain(report), report[1]) == ([(3, 1.5)], {"speed": 91.0, "tool": "A"})


@pytest.mark.parametrize(
    "words",
    ["3=1 4", "3=1 3=2", "1 2 3", "1 2 value=3", "value=1", "speed=60 3=1", "x 1", "speed=60"],
)
def test_words_that_are_not_understood(words):
    from airbo.lab import CampaignError

    with pytest.raises(CampaignError):
        report_in(words.split(), SPACE, {"value": "%"})


def test_all_mistakes_of_a_report_are_named_at_once(here):
    write(here, MILL)
    typed = airbo_("tell", "speed=fast", "depht=1", "tool=C", "passes=1.5", "1.5x", code=1).output
    said = " ".join(typed.split())
    for what in ("'fast'", "'depht'", "got 'C'", "passes must be a whole number", "'1.5x'"):
        assert what in said
    words = ["speed=500", "depth=9", "passes=2", "tool=A", "1.5"]
    said = " ".join(airbo_("tell", *words, code=1).output.split())
    assert "Parameter 'speed'" in said
    assert "Parameter 'depth'" in said


BRACKETS = """\
name = "a [/b]"
value = { unit = "[/min]" }
[parameters.t]
choices = ["drill[a]", "drill[b]", "[/B]"]
[parameters.x]
low = 0
high = 1
unit = "$/$"
uncertainty = { kind = "normal", std = 0.1 }
"""


def test_brackets_of_users_are_no_markup(here):
    write(here, BRACKETS)
    assert "drill[a], drill[b], [/B]" in airbo_("check").stdout
    shown = airbo_("ask", "-n", 6).stdout
    designs = data("status")["pending"]
    assert all(f" {e['design']['t']} " in shown for e in designs)
    assert "x [$/$]" in shown
    assert "1 [/min]" in airbo_("tell", 0, 1).stdout
    assert "Campaign 'a [/b]'" in airbo_("status").stdout
    assert designs[0]["design"]["t"] in airbo_("recommend").stdout


def test_giving_up_several_gives_up_all_or_none(here):
    write(here, LINE)
    airbo_("ask", "-n", 2)
    assert "no experiment 99" in airbo_("fail", 1, 99, "--gave-up", code=1).stderr
    assert len(data("status")["pending"]) == 2
    airbo_("tell", 1, 5)
    assert "reported before" in airbo_("fail", 1, "--gave-up", code=1).stderr
    assert "5 → given up" in airbo_("fail", 1, "--gave-up", "--correct").stdout


def test_nothing_is_final(here, monkeypatch):
    write(here, MILL)
    monkeypatch.setenv("AIRBO_USER", "Ann")
    airbo_("ask", "-n", 2)
    airbo_("tell", 0, 1.5, "--executed", "speed=101")
    said = airbo_("tell", 0, 2.5, "--correct").stdout
    assert "Experiment 0 is corrected: 1.5 µm → 2.5 µm." in said
    assert "The executed input stays as it was measured: speed = 101." in said
    said = airbo_("tell", 1, "speed=91", 3).stdout
    assert "→ 91" in said
    assert "Pending again: 1." in airbo_("undo").stdout
    assert "Taken back: corrected (experiment 0): 1.5 µm → 2.5 µm." in airbo_("undo").stdout
    assert data("exclude", 0, "--why", "loose")["experiment"]["excluded"] == "loose"
    assert "1 of them excluded" in airbo_("status").stdout
    assert data("include", 0)["experiment"]["excluded"] is None
    assert data("note", 0, "new batch")["experiment"]["notes"] == ["new batch"]
    assert data("undo")["undone"][0]["what"] == "noted"
    changes = data("export", "--history")["changes"]
    assert [c["what"] for c in changes] == [
        "begun", "asked", "asked", "told", "corrected", "told", "undone", "undone", "excluded",
        "included", "noted", "undone",
    ]  # fmt: skip
    assert {c["by"] for c in changes} == {"Ann"}
    assert [c["undone"] for c in changes[3:6]] == [False, True, True]
    assert "measured speed 101 → not measured" in airbo_(
        "tell", 0, 1.5, "--correct", "--not-measured"
    ).stdout  # fmt: skip


def test_a_typing_error_is_questioned(here, monkeypatch):
    write(here, MILL)
    airbo_("ask", "-n", 2)
    slip = ("tell", 0, 1.5, "--executed", "speed=9999")
    message = airbo_(*slip, code=1).stderr.replace("\n", " ")
    assert "speed: an executed input of 9999 is far outside the range 50 to 200 m/min." in message
    assert "add --yes" in message
    assert len(data("status")["pending"]) == 2
    monkeypatch.setattr(airbo.lab.cli.command, "somebody_is_there", lambda: True)
    assert "Nothing was stored" in airbo_(*slip, input="n\n", code=1).stderr
    assert len(data("status")["pending"]) == 2
    assert "1.5" in airbo_(*slip, input="y\n").stdout
    monkeypatch.setattr(airbo.lab.cli.command, "somebody_is_there", lambda: False)
    assert "1.5" in airbo_("tell", 1, 1.5, "--executed", "speed=9999", "--yes").stdout
