"""``airbo calibrate``: what it prints, writes and refuses."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from airbo import uncertainty as unc
from airbo.calibrate import believe
from airbo.calibrate import learned as learning
from airbo.lab import Settings
from airbo.lab.cli.app import app

CAMPAIGN = """\
name = "mixing"

[parameters.temp]
low = 60.0
high = 120.0

[parameters.flow]
low = 5.0
high = 50.0

"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setattr(learning, "N_FOLDS", 2)  # what is printed does not depend on it
    return tmp_path


@pytest.fixture
def log(here):
    rng = np.random.default_rng(0)
    temp, flow = rng.uniform(60, 120, 150), rng.uniform(5, 50, 150)
    rows = zip(
        temp, temp + rng.normal(2, 1, 150), flow, flow * rng.normal(1, 0.05, 150), strict=True
    )
    lines = [";".join(f"{v:.3f}".replace(".", ",") for v in row) for row in rows]
    path = here / "log.csv"
    path.write_text("\n".join(["temp_sp;temp_pv;flow_sp;flow_pv", *lines]), encoding="utf-8-sig")
    return path


def calibrate(*words, code=0):
    result = CliRunner().invoke(app, ["calibrate", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_it_prints_words_candidates_and_lines_that_a_campaign_accepts(here, log):
    printed = calibrate(log).stdout
    assert "temp: on average" in printed
    assert "of the value (standard deviation)" in printed
    assert "← proposed" in printed
    toml = printed.split("For campaign.toml:")[1]
    (here / "campaign.toml").write_text(CAMPAIGN + toml)
    settings = Settings.read(here / "campaign.toml")
    learned = json.loads(calibrate(log, "--json").stdout)
    blocks = unc.from_dict(learned["uncertainty"]).blocks
    assert [settings.uncertainty["temp"], settings.uncertainty["flow"]] == list(blocks)
    assert isinstance(blocks[1], unc.Relative)


def test_columns_can_be_named(log):
    data = json.loads(calibrate(log, "--pair", "T:temp_sp=temp_pv", "--json").stdout)
    assert data["pairs"] == {"T": ["temp_sp", "temp_pv"]}
    assert data["unused"] == ["flow_sp", "flow_pv"]
    assert {c["proposed"] for c in data["candidates"]} == {True, False}


def test_groups_are_accepted_by_a_campaign(here):
    rng = np.random.default_rng(0)
    X = rng.uniform([60, 5], [120, 50], (150, 2))
    Y = X + rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 150)
    table = np.column_stack([X, Y])
    np.savetxt(here / "log.csv", table, delimiter=",", comments="",
               header="temp_asked,flow_asked,temp_actual,flow_actual")  # fmt: skip
    data = json.loads(calibrate(here / "log.csv", "--json").stdout)
    (here / "campaign.toml").write_text(CAMPAIGN + data["toml"])
    found = Settings.read(here / "campaign.toml").uncertainty
    assert found == {("temp", "flow"): unc.from_dict(data["uncertainty"])}


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["nowhere.csv"], "nowhere.csv cannot be read", 4),
        (["log.csv", "--pair", "a=b"], "There is no column 'a'", 1),
    ],
)
def test_refusals(log, words, message, code):
    assert message in calibrate(*words, code=code).output


MEASURED = """\
name = "mixing"
n_initial = 1000
surrogate = "nominal"
storage = "sqlite:///campaign.db"

[parameters.temp]
low = 60.0
high = 120.0
uncertainty = { kind = "normal", std = 2.0 }

[parameters.flow]
low = 5.0
high = 50.0
uncertainty = { kind = "normal", std = "5%" }

[parameters.passes]
type = "integer"
low = 1
high = 4
uncertainty = { kind = "normal", std = 0.8 }
"""


@pytest.fixture
def measured(here):
    """A campaign in which the file is right."""
    rng = np.random.default_rng(3)
    n = 40
    temp, flow, passes = rng.uniform(60, 120, n), rng.uniform(5, 50, n), rng.integers(1, 5, n)
    landed = np.clip(np.floor(passes + rng.normal(0, 0.8, n) + 0.5), 1, 4)
    rows = zip(
        temp, flow, passes, temp + rng.normal(0, 2, n), flow * rng.normal(1, 0.05, n), landed,
        strict=True,
    )  # fmt: skip
    header = "temp,flow,passes,executed_temp,executed_flow,executed_passes,value\n"
    text = "".join(",".join(map(str, row)) + ",1.0\n" for row in rows)
    (here / "done.csv").write_text(header + text)

    def begin(file):
        (here / "campaign.toml").write_text(file)
        result = CliRunner().invoke(app, ["import", "done.csv"])
        assert result.exit_code == 0, result.output

    return begin


def beliefs(*words):
    found = json.loads(calibrate("--json", *words).stdout)["beliefs"]
    return {b["parameter"]: b["believable"] for b in found}


def test_a_file_that_is_right_is_believed(measured):
    measured(MEASURED)
    assert beliefs() == {"temp": True, "flow": True, "passes": True}
    printed = " ".join(calibrate().stdout.split())
    assert (
        "flow: the file says ±5% of the value (standard deviation). That is believable" in printed
    )
    assert "For campaign.toml:" not in printed  # what is believable stays as it is


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


BIASED = 'kind = "gaussian-mixture", means = [[3.0]], covs = [[[4.0]]]'


@pytest.mark.parametrize(
    ("right", "wrong", "parameter", "words"),
    [
        ("std = 2.0", "std = 0.9", "temp", "times as large"),
        slow("std = 2.0", "std = 6.0", "temp", "the deviations are smaller"),
        ('kind = "normal", std = 2.0', 'kind = "exact"', "temp", "set exactly"),
        slow('kind = "normal", std = 2.0', BIASED, "temp", "the mean lies below what it expects"),
        slow('std = "5%"', 'std = "1%"', "flow", "times as large"),
        slow("std = 0.8", "std = 0.1", "passes", "not believable"),
    ],
)
def test_a_file_that_is_wrong_is_not_believed(measured, right, wrong, parameter, words):
    assert right in MEASURED
    measured(MEASURED.replace(right, wrong))
    expected = {"temp": True, "flow": True, "passes": True, parameter: False}
    found = json.loads(calibrate("--json").stdout)["beliefs"]
    assert {b["parameter"]: b["believable"] for b in found} == expected
    [said] = [b["text"] for b in found if b["parameter"] == parameter]
    assert words in said


def test_without_measured_inputs_it_says_how_to_get_them(here):
    (here / "campaign.toml").write_text(MEASURED)
    assert "--executed temp=" in calibrate(code=1).stderr


def test_a_right_file_is_refused_in_one_case_of_a_hundred_or_less():
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        x = rng.uniform(1, 2, (15, 1))
        belief = believe("x", unc.Normal(0.5), x, 0, x[:, 0] + rng.normal(0, 0.5, 15), "")
        refused += not belief.is_believable
    assert refused <= 4 + 3 * 2  # 400 times 1%, and three standard deviations
