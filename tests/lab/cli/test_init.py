"""``airbo init``: from flags to a campaign file."""

import re

import pytest

from airbo.uncertainty.kinds import WORDS
from tests.lab.cli.common import airbo_, data

pytestmark = pytest.mark.usefixtures("here")


def test_init_from_flags_writes_a_file_that_check_understands(here):
    airbo_(
        "init", "--name", "my mill", "--value", "rate:mm³/s", "--direction", "minimize",
        "--parameter", "speed=50:200:m/min", "--parameter", "passes=1:5:integer",
        "--parameter", "tool=A,B", "--uncertainty", "speed=uniform:-2:3",
    )  # fmt: skip
    said = data("check")
    assert (said["name"], said["direction"]) == ("my mill", "minimize")
    assert said["value"] == {"name": "rate", "unit": "mm³/s"}
    assert [p["type"] for p in said["parameters"]] == ["float", "integer", "categorical"]
    assert said["uncertainty"][0]["uncertainty"] == {"kind": "Uniform", "low": -2.0, "high": 3.0}


def test_without_flags_there_is_a_file_to_edit(here):
    assert "Replace its parameters by yours" in airbo_("init").stdout
    assert [p["name"] for p in data("check")["parameters"]] == ["speed", "tool"]


def test_init_takes_log_integer_and_step_behind_the_unit(here):
    airbo_(
        "init", "--parameter", "dose=0.1:10:mol%:log", "--parameter", "n=1:9:integer:log",
        "--parameter", "angle=0:90:°:step=15", "--uncertainty", "dose=normal:5%",
        "--uncertainty", "angle=lognormal:2%",
    )  # fmt: skip
    dose, n, angle = data("check")["parameters"]
    assert (dose["type"], dose["log"], dose["unit"]) == ("float", True, "mol%")
    assert (n["type"], n["log"], n["unit"]) == ("integer", True, None)
    assert (angle["step"], angle["unit"]) == (15.0, "°")


def test_the_comments_of_a_new_file_say_what_is_in_force_and_show_every_kind(here):
    flags = [f for name in "abcde" for f in ("--parameter", f"{name}=10:20")]
    airbo_("init", *flags)
    text = (here / "campaign.toml").read_text()
    before = data("check")
    in_force = re.sub(r"(?m)^# (seed|n_initial|surrogate|acquisition) =", r"\1 =", text)
    assert in_force.count("n_initial = 12") == 1
    (here / "campaign.toml").write_text(in_force)
    assert data("check") == before
    of_outcomes = re.sub(r"(?m)^# ", "", text.split("value and measure.\n")[1])
    named = re.sub(r"(?m)^(direction|value) =.*\n", "", text) + of_outcomes
    (here / "campaign.toml").write_text(named)
    assert list(data("check")["outcomes"]) == ["strength", "leak"]
    examples = re.findall(r"(?m)^#   (\{ kind = .*? \})(?:  .*)?$", text)
    (here / "log.csv").write_text("-0.5\n0.5\n")
    shown = {re.search(r'kind = "(.*?)"', e)[1] for e in examples} | {"ring", "joint"}
    assert shown == set(WORDS)
    assert all(f'"{word}"' in text for word in WORDS)
    for example in examples:
        if "..." not in example:
            written = text.replace("[parameters.a]", f"[parameters.a]\nuncertainty = {example}", 1)
            (here / "campaign.toml").write_text(written)
            assert len(data("check")["uncertainty"]) == 1


def test_init_reads_numbers_as_people_type_them_and_names_all_mistakes(here):
    flags = ["--parameter", "dose=0,5:2,5:mg", "--parameter", "flow=1:9"]
    airbo_("init", *flags, "--uncertainty", "dose=normal:0,1", "--uncertainty", "flow=normal:2,5%")
    said = data("check")
    assert (said["parameters"][0]["low"], said["parameters"][0]["high"]) == (0.5, 2.5)
    assert "std = 0.1 }" in (here / "campaign.toml").read_text()
    assert 'std = "2.5%" }' in (here / "campaign.toml").read_text()
    flags = ["--parameter", "x=a:b", "--parameter", "tool=A", "--parameter", "cooling=0:1"]
    flags += ["--uncertainty", "colling=normal:1", "--uncertainty", "x=normal:c", "--force"]
    said = re.sub(r"[\s│]+", " ", airbo_("init", *flags, code=2).stderr)
    for what in (
        "got 'a'",
        "got 'tool=A'",
        "names 'colling'",
        "did you mean 'cooling'?",
        "got 'c'",
    ):
        assert what in said


def test_init_never_overwrites_by_accident(here):
    (here / "campaign.toml").write_text("mine")
    flags = ["--parameter", "x=0:1"]
    assert "--force replaces it" in airbo_("init", *flags, code=1).stderr
    assert (here / "campaign.toml").read_text() == "mine"
    airbo_("init", *flags, "--force")
    assert "[parameters.x]" in (here / "campaign.toml").read_text()


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--parameter", "x=a:b"], 2, "--parameter x=a:b: the range must be a number, got 'a'"),
        (["--parameter", "x=0:1", "--uncertainty", "x=normal:abc"], 2, "must be a number"),
        (["--parameter", "x=1:0"], 3, "low must be < high"),
        (["--parameter", "x=0:1:m:s"], 2, "at most one unit"),
        (["--parameter", "x=0:1", "--uncertainty", "x=normal:a%"], 2, "or percent, such as 5%"),
        (["--parameter", "x"], 2, "is written as speed=50:200:m/min"),
        (["--parameter", "x=0:1", "--uncertainty", "y=normal:1"], 2, "names 'y'"),
        (["--parameter", "x=0:1", "--uncertainty", "x=odd:1"], 2, "is written as one of"),
        (["--parameter", "x=0:1", "--direction", "up"], 3, "direction must be one of"),
        (["--parameter", "x=A,"], 3, "At least two choices"),
    ],
)
def test_init_writes_nothing_if_something_is_wrong(here, flags, code, message):
    result = airbo_("init", *flags, code=code)
    assert message in re.sub(r"[\s│]+", " ", result.stderr)
    assert list(here.iterdir()) == []
