"""A parameter, a choice or a wider range may come to a campaign in progress."""

import pytest

from airbo import Campaign
from airbo.lab import Settings
from airbo.lab.errors import FileError, StorageError
from tests.lab.common import DESIGN, LINE, MILL, write

STIRRER = """
[parameters.stirring]
low = 100.0
high = 900.0
unit = "rpm"
uncertainty = { kind = "normal", std = 10.0 }
"""
BEFORE = "before = 300.0\n"


@pytest.fixture
def begun(tmp_path):
    """A campaign with a value, a correction, a note and a pending design."""
    with Campaign.open(write(tmp_path)) as c:
        c.ask()
        c.tell({"x": 0.2}, 1.0, note="first")
        c.tell(1, 1.5, correct=True)
    return tmp_path


def test_former_experiments_have_the_value_of_the_file_and_nothing_else_changes(begun):
    with Campaign.open(begun / "campaign.toml") as c:
        earlier, events = c.record(), len(c.record().events)
    with Campaign.open(write(begun, LINE + STIRRER + BEFORE)) as c:
        assert [e.design["stirring"] for e in c.experiments] == [300.0, 300.0]
        assert [list(e.design) for e in c.experiments] == [["x", "stirring"]] * 2
        assert c.experiment(1).outcomes == {"value": 1.5}
        assert c.experiment(1).notes == ("first",)
        assert c.history() == earlier.history
        assert len(c.record().events) == events
        under = c.experiment(1).uncertainty
        assert [u["parameters"] for u in under] == [["x"], ["stirring"]]
        assert c.optimizer().observations["stirring"].tolist() == [300.0]


def test_a_new_parameter_is_asked_for_and_told_beside_the_former_experiments(begun):
    path = write(begun, LINE + STIRRER + BEFORE)
    with Campaign.open(path) as c:
        [asked] = c.ask()
        c.tell(asked.number, 2.0)
        c.tell({"x": 0.5, "stirring": 700.0}, 3.0)
        assert 100 <= asked.design["stirring"] <= 900
        assert c.experiment(1).design == {"x": 0.2, "stirring": 300.0}
    # what was written stays known if the line is removed, and can be corrected
    with Campaign.open(write(begun, LINE + STIRRER)) as c:
        assert c.experiment(1).design == {"x": 0.2, "stirring": 300.0}
    with Campaign.open(write(begun, LINE + STIRRER + "before = 250.0\n")) as c:
        assert c.experiment(1).design == {"x": 0.2, "stirring": 250.0}
        assert c.experiment(asked.number).design == asked.design


def test_a_new_parameter_without_a_value_for_former_experiments_is_refused(begun):
    with pytest.raises(StorageError, match=r"'stirring' is new .*before = .*parameters.stirring"):
        Campaign.open(write(begun, LINE + STIRRER))


def test_the_value_of_former_experiments_must_fit_the_parameter(tmp_path):
    with pytest.raises(FileError, match=r"parameters.stirring: before: .*got 'slow'"):
        Settings.read(write(tmp_path, LINE + STIRRER + 'before = "slow"\n'))


def test_a_new_choice_and_a_wider_range_keep_all_experiments(tmp_path):
    with Campaign.open(write(tmp_path, MILL)) as c:
        c.tell(DESIGN, 1.0)
    wider = MILL.replace('["A", "B"]', '["A", "B", "C"]').replace("high = 200.0", "high = 300.0")
    with Campaign.open(write(tmp_path, wider)) as c:
        assert c.experiment(0).design == DESIGN
        c.tell({**DESIGN, "tool": "C", "speed": 250.0}, 2.0)
        assert len(c.optimizer().observations) == 2
        assert "the file: parameters" in [h.text for h in c.history() if h.what == "changed"]
