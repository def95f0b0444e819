"""What nobody sets: in the file, in events, in tables, and in what the model says."""

import json
import re

import numpy as np
import pytest

from airbo.lab import Campaign, CampaignError, FileError
from airbo.optimizer import TooLittleDataWarning
from tests.lab.cli.common import airbo_, data
from tests.lab.common import campaign, edited, settings, told, write

pytestmark = pytest.mark.usefixtures("few_draws")

OVEN = """\
name = "oven"
value = { name = "gloss", unit = "GU" }
seed = 1
n_initial = 4
storage = "sqlite:///campaign.db"
[parameters.temp]
low = 100.0
high = 200.0
unit = "°C"
uncertainty = { kind = "normal", std = 2.0 }
[parameters.tool]
choices = ["A", "B"]
[environment.humidity]
low = 20
high = 90
typical = 50
unit = "%"
law = { kind = "normal", std = 8.0 }
"""
LAW = 'law = { kind = "normal", std = 8.0 }\n'
LAWLESS = edited(OVEN, LAW, "")


def gloss(design, humidity):
    """Best at a temperature that follows the humidity: 120 °C + humidity."""
    best = 120.0 + humidity
    return 80.0 - 0.02 * (design["temp"] - best) ** 2 - (5.0 if design["tool"] == "B" else 0.0)


def worked(folder, n=32, text=OVEN, measured=lambda i: True):
    """Return a campaign with experiments on days of different humidity."""
    c = campaign(folder, text)
    rng = np.random.default_rng(0)
    for i in range(n):
        humidity = float(rng.uniform(30, 70))
        design = {"temp": float(rng.uniform(130, 200)), "tool": "AB"[int(rng.integers(2))]}
        executed = {"humidity": humidity} if measured(i) else None
        c.tell(design, gloss(design, humidity), executed=executed)
    return c


@pytest.fixture(scope="module")
def oven(tmp_path_factory):
    return worked(tmp_path_factory.mktemp("oven"))


# -- the file


def test_the_file_says_what_nobody_sets():
    s = settings(OVEN)
    [(name, around)] = s.space.environment.items()
    assert (name, around.low, around.high, around.typical, around.unit) == (
        "humidity",
        20,
        90,
        50,
        "%",
    )
    assert s.space.names == ("temp", "tool")
    assert [law.names for law in s.laws] == [("humidity",)]
    s.check()


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("typical = 50", "typical = 99", "line 16: environment.humidity: typical must be between"),
        ("high = 90", "high = 55", "The law of 'humidity' takes it out of 20 to 55 in"),
        ("typical = 50", "step = 2", "unknown key 'step'"),
        ("[environment.humidity]", "[environment.tool]", "'tool' is a parameter"),
        ("[environment.humidity]", "[environment.gloss]", "an outcome cannot be called 'gloss'"),
        ("[environment.humidity]", "[environment.value]", "cannot be called 'value'"),
        ('law = { kind = "normal"', 'law = { kind = "norm"', "unknown kind 'norm'"),
        ("std = 8.0", "sd = 8.0", "unknown key 'sd'"),
    ],
)
def test_mistakes_in_an_environment_are_named(old, new, match):
    with pytest.raises(FileError, match=match):
        settings(edited(OVEN, old, new)).check()


def test_a_law_in_use_leaves_the_parameters_as_they_are():
    s = settings(OVEN + 'deployment = { kind = "uniform", low = -5, high = 5 }\n')
    assert {tuple(u["parameters"]) for u in s.described_deployment} == {("temp",), ("humidity",)}
    in_use = {tuple(u["parameters"]): u["uncertainty"]["kind"] for u in s.described_deployment}
    assert in_use == {("temp",): "Normal", ("humidity",): "Uniform"}


def test_exact_use_of_parameters_keeps_the_law_of_the_environment():
    s = settings('deployment = "exact"\n' + OVEN)
    assert [u["parameters"] for u in s.described_deployment] == [["humidity"]]


def test_check_and_init_know_the_environment(tmp_path):
    path = write(tmp_path, OVEN)
    assert "nobody sets it" in airbo_("check", path).output
    found = data("check", path)
    assert [row["parameter"] for row in found["lands"]] == ["temp", "humidity"]
    new = tmp_path / "new.toml"
    airbo_(
        "init", new, "--parameter", "temp=100:200:°C", "--environment",
        "humidity=20:90:%:typical=50", "--uncertainty", "humidity=normal:8",
    )  # fmt: skip
    written = settings(new.read_text())
    assert written.space.environment == settings(OVEN).space.environment
    assert written.laws == settings(OVEN).laws


# -- events, tables


def test_what_was_measured_survives_corrections_undo_and_a_new_process(tmp_path):
    path = write(tmp_path, OVEN)
    airbo_("ask", "-f", path, "--given", "humidity=63", "--given", "tool=A")
    [asked] = data("status", "-f", path)["pending"]
    assert asked["given"] == {"humidity": 63.0}
    assert asked["design"]["tool"] == "A"
    airbo_("tell", "0", "41.2", "humidity=63", "--noise", "0.3", "-f", path)
    first = told(Campaign.open(path))
    airbo_("tell", "0", "44.2", "--correct", "-f", path)
    e = Campaign.open(path).experiment(0)
    assert (dict(e.executed), dict(e.noise)) == ({"humidity": 63.0}, {"gloss": 0.3})
    airbo_("tell", "0", "44.2", "humidity=60%", "--correct", "-f", path)
    assert Campaign.open(path).experiment(0).executed == {"humidity": 60.0}
    airbo_("undo", "-f", path)
    airbo_("undo", "-f", path)
    assert told(Campaign.open(path)) == first
    texts = [change.text for change in Campaign.open(path).history()]
    assert any("given humidity = 63" in text for text in texts)
    assert "44.2 GU" in "".join(texts)
    assert "measured humidity 63 → 60" in texts


def test_a_run_may_be_about_a_day_that_is_known(tmp_path):
    path = write(tmp_path, OVEN)
    options = ["--command", "echo 1.5", "--budget", "2", "-f", path, "--json"]
    airbo_("run", *options, "--given", "humidity=63", "--given", "tool=A")
    with Campaign.open(path) as c:
        assert [dict(e.executed) for e in c.experiments] == [{"humidity": 63.0}] * 2
        assert {e.design["tool"] for e in c.experiments} == {"A"}


def test_what_was_given_counts_unless_another_value_was_measured(tmp_path):
    c = campaign(tmp_path, OVEN)
    c.ask(3, given={"humidity": 63.0})
    told = [
        c.tell(0, 70.0),
        c.tell(1, 70.0, executed={"humidity": 60.0}),
        c.tell(2, 70.0, executed={}),
    ]
    assert [dict(t.experiment.executed) for t in told] == [
        {"humidity": 63.0},
        {"humidity": 60.0},
        {},
    ]


@pytest.mark.parametrize("name", ["table.csv", "table.xlsx"])
def test_an_export_that_is_imported_again_is_the_same(oven, tmp_path, name):
    oven.tell({"temp": 150.0, "tool": "A"}, 71.0, noise=0.25, again=True)
    airbo_("export", "-f", oven.settings.path, "-o", tmp_path / name)
    twin = campaign(tmp_path, OVEN)
    twin.import_table(tmp_path / name)
    assert told(twin) == told(oven)
    assert [e.noise for e in twin.experiments] == [e.noise for e in oven.experiments]
    oven.undo()


def test_a_table_names_the_environment_with_its_unit(tmp_path):
    table = tmp_path / "log.csv"
    table.write_text("temp,tool,gloss,humidity [%]\n150,A,70,63\n160,B,60,\n")
    c = campaign(tmp_path, OVEN)
    c.import_table(table)
    assert [dict(e.executed) for e in c.experiments] == [{"humidity": 63.0}, {}]
    table.write_text("temp,tool,gloss,humidity\n150,A,70,163\n")
    with pytest.raises(FileError, match="line 2: executed: 'humidity' is 163, but its bounds"):
        c.import_table(table)


def test_an_environment_may_be_added_later_and_not_be_removed(tmp_path):
    without = OVEN.partition("[environment")[0]
    c = campaign(tmp_path, without)
    for i in range(6):
        c.tell({"temp": 130.0 + 10 * i, "tool": "A"}, 60.0 + i)
    c.close()
    c = campaign(tmp_path, OVEN)
    c.tell({"temp": 150.0, "tool": "A"}, 71.0, executed={"humidity": 63.0})
    assert c.recommend().design["tool"] == "A"
    with pytest.raises(CampaignError, match="environment 'humidity' is gone"):
        campaign(tmp_path, without)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["humidity=120"], "'humidity' is 120, but its bounds are 20 and 90"),
        (["humidity=wet"], "humidity must be a number, got 'wet'"),
        (["humidty=50"], "did you mean 'humidity'"),
        (["humidity=50", "humidity=51"], "named twice"),
        (["--noise", "-1"], "must be >= 0"),
        (["--noise", "gros=1"], "unknown outcome 'gros'"),
    ],
)
def test_nothing_is_stored_if_something_is_wrong(tmp_path, words, match):
    path = write(tmp_path, OVEN)
    airbo_("ask", "-f", path)
    assert match in data("tell", "0", "70", *words, "-f", path, code=1)["error"]
    assert data("status", "-f", path)["ok"] == 0


# -- what the model says


def test_without_a_law_it_has_to_be_measured_and_given(tmp_path):
    c = campaign(tmp_path, LAWLESS)
    with pytest.raises(CampaignError, match="as in --given humidity=50, or write a law"):
        c.ask()
    [asked] = c.ask(given={"humidity": 60.0})
    with pytest.raises(CampaignError, match="every experiment has to measure it"):
        c.tell(asked.number, 70.0, executed={})
    c.tell(asked.number, 70.0, executed={"humidity": 61.0})
    c.fail({"temp": 150.0, "tool": "A"})  # a failure without a measurement says nothing
    with pytest.raises(CampaignError, match="--given"):
        c.recommend()
    with pytest.warns(TooLittleDataWarning):
        assert c.recommend(given={"humidity": 60.0}).mean == pytest.approx(70.0)


def test_the_best_design_of_a_day_follows_the_day(oven):
    dry, wet = (oven.recommend(given={"humidity": h}).design for h in (40.0, 60.0))
    assert dry["tool"] == wet["tool"] == "A"
    assert dry["temp"] == pytest.approx(160, abs=4)
    assert wet["temp"] == pytest.approx(180, abs=4)
    assert oven.recommend().design["temp"] == pytest.approx(170, abs=4)
    assert oven.recommend(given={"humidity": 60.0, "temp": 150.123}).design["temp"] == 150.123
    with pytest.raises(CampaignError, match="No experiment has"):
        oven.recommend("observed", given={"temp": 150.123})
    with pytest.raises(CampaignError, match="nothing is left to choose"):
        oven.recommend(given={"tool": "B", "temp": 150.123})


def test_commands_and_python_say_the_same(oven):
    path, given = oven.settings.path, {"humidity": 60.0}
    best = data("recommend", "--given", "humidity=60", "-f", path)
    assert best["design"] == oven.recommend(given=given).design
    assert best["given"] == given
    expected = data("predict", "temp=150", "tool=A", "humidity=60", "-f", path)
    found = oven.predict({"temp": 150.0, "tool": "A", **given}).to_dict()
    assert expected == json.loads(json.dumps(found))
    assert expected["outcomes"]["gloss"]["mean"] == pytest.approx(62.0, abs=2)
    assert "humidity = 60 %" in airbo_("predict", "humidity=60", "-f", path).output


def test_the_law_adds_to_what_single_runs_give(oven):
    def width(**around):
        low, high = (
            oven.predict({"temp": 150.0, "tool": "A", **around}).outcomes["gloss"].single_run
        )
        return high - low

    assert width() > 1.5 * width(humidity=50.0)


def test_a_command_may_print_what_it_measured(tmp_path):
    path = write(tmp_path, OVEN)
    (tmp_path / "line").write_text('{"gloss": 70.5, "humidity": 63}')
    airbo_("run", "--command", f"cat {tmp_path / 'line'}", "--budget", "2", "-f", path)
    c = Campaign.open(path)
    assert [(dict(e.outcomes), dict(e.executed)) for e in c.experiments] == 2 * [
        ({"gloss": 70.5}, {"humidity": 63.0})
    ]


# -- the report


def test_the_report_says_how_much_of_the_scatter_the_environment_explains(oven, tmp_path):
    airbo_("report", "-f", oven.settings.path, "-o", tmp_path / "all.html")
    text = (tmp_path / "all.html").read_text()
    assert "gloss against humidity" in text
    # Var over the law alone: g(h) = 0.02 (h - 50)², so that its share is nearly everything here
    share = float(re.search(r"humidity explains ([\d.]+)% of the scatter of gloss", text)[1])
    assert share > 80
    assert "nobody sets it" in text
    listed = re.findall(r'data-title="humidity[^"]*">([^<]+)<', text)
    measured = [e.executed["humidity"] for e in oven.experiments]
    assert [float(number) for number in listed] == pytest.approx(measured, rel=0.01)
    airbo_(
        "report", "-f", oven.settings.path, "-o", tmp_path / "day.html", "--given", "humidity=40"
    )
    assert "gloss against humidity" not in (tmp_path / "day.html").read_text()


def test_the_curve_over_days_is_what_is_predicted_of_each_day(oven):
    from airbo.lab.report import Findings
    from airbo.lab.report.along import on_days

    findings = Findings(oven.optimizer(), oven.settings.units)
    [outcome] = findings.parts
    days, expected = on_days(outcome, "humidity")
    for i in (0, len(days) // 2, -1):
        there = oven.predict({**findings.best.design, "humidity": days[i]}).outcomes["gloss"]
        assert (expected.mean[i], expected.std[i]) == pytest.approx(
            (there.mean, there.std), rel=1e-6
        )
    assert outcome.here.mean == pytest.approx(
        oven.predict(findings.best.design).outcomes["gloss"].mean
    )


def test_a_window_and_a_budget_know_the_environment(oven, tmp_path):
    limit = edited(OVEN, 'value = { name = "gloss", unit = "GU" }\n', "")
    limit += '[outcomes.gloss]\ngoal = "maximize"\nmeasure = "in-spec:60.."\n'
    c = campaign(tmp_path, limit)
    for e in oven.experiments:
        c.tell(e.design, dict(e.outcomes), executed=e.executed)
    all_days, one_day = c.adviser().answer(), c.adviser().answer(given={"humidity": 50.0})
    parts = [{*part.parameters} for part in all_days.handover.budgets[0].contributions]
    assert parts == [{"temp"}, {"humidity"}]
    assert [{*p.parameters} for p in one_day.handover.budgets[0].contributions] == [{"temp"}]
    assert all_days.handover.window.probability < one_day.handover.window.probability
    airbo_("report", "-f", c.settings.path, "-o", tmp_path / "limit.html")


def test_a_law_is_learned_from_what_was_measured(tmp_path):
    c = campaign(tmp_path, LAWLESS)
    rng = np.random.default_rng(1)
    for i in range(40):
        around = {"humidity": float(rng.normal(55, 6))}
        c.tell({"temp": 100.0 + i, "tool": "A"}, float(i % 7), executed=around)
    words = ("calibrate", "--environment", "humidity", "-f", c.settings.path)
    found = data(*words)
    assert found["typical"] == pytest.approx(55, abs=2)
    learned = settings(LAWLESS + found["toml"])
    learned.check()
    assert learned.laws[0].description["kind"] == "Normal"
    assert learned.laws[0].description["std"] == pytest.approx(6, rel=0.3)
    assert "typically" in airbo_(*words).output
    said = data("calibrate", "--environment", "pressure", "-f", c.settings.path, code=1)["error"]
    assert "There is no environment 'pressure'" in said


def test_calibrate_looks_at_parameters_beside_an_environment(tmp_path):
    c = campaign(tmp_path, OVEN)
    rng = np.random.default_rng(1)
    for i in range(12):
        executed = {"humidity": 50.0, "temp": 110.0 + i + float(rng.normal(0, 2))}
        c.tell({"temp": 110.0 + i, "tool": "A"}, float(i % 5), executed=executed)
    [belief] = data("calibrate", "-f", c.settings.path)["beliefs"]
    assert (belief["parameter"], belief["believable"]) == ("temp", True)
