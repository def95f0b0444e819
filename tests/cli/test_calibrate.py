"""``airbo calibrate``: what it prints, writes and refuses."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from airbo import uncertainty as unc
from airbo.campaign import Settings
from airbo.cli.app import app

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
    return tmp_path


@pytest.fixture
def log(here):
    rng = np.random.default_rng(0)
    temp, flow = rng.uniform(60, 120, 400), rng.uniform(5, 50, 400)
    rows = zip(
        temp, temp + rng.normal(2, 1, 400), flow, flow * rng.normal(1, 0.05, 400), strict=True
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
    assert "in percent of the asked value" in printed
    assert "← proposed" in printed
    toml = printed.split("For campaign.toml:")[1].split("Picture:")[0]
    (here / "campaign.toml").write_text(CAMPAIGN + toml)
    settings = Settings.read(here / "campaign.toml")
    learned = json.loads(calibrate(log, "--no-picture", "--json").stdout)
    blocks = unc.from_dict(learned["uncertainty"]).blocks
    assert [settings.uncertainty["temp"], settings.uncertainty["flow"]] == list(blocks)
    assert isinstance(blocks[1], unc.Relative)


def test_the_picture_is_a_png_beside_the_log(here, log):
    calibrate(log)
    assert (here / "log_calibration.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_it_says_what_to_install(here, log, monkeypatch):
    monkeypatch.setitem(sys.modules, "airbo.cli.calibration_picture", None)
    assert "pip install 'airbo[plot]'" in calibrate(log).output
    assert not list(here.glob("*.png"))


def test_columns_can_be_named(log):
    data = json.loads(
        calibrate(log, "--pair", "T:temp_sp=temp_pv", "--no-picture", "--json").stdout
    )
    assert data["pairs"] == {"T": ["temp_sp", "temp_pv"]}
    assert data["unused"] == ["flow_sp", "flow_pv"]
    assert {c["proposed"] for c in data["candidates"]} == {True, False}


def test_groups_are_drawn_and_accepted_by_a_campaign(here):
    rng = np.random.default_rng(0)
    X = rng.uniform([60, 5], [120, 50], (300, 2))
    Y = X + rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 300)
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
        (["log.csv", "-o", "no/such/folder.png"], "cannot be written", 4),
    ],
)
def test_refusals(log, words, message, code):
    assert message in calibrate(*words, code=code).output
