"""Campaigns and optimizers that version 0.1.0 saved still open, ask and tell."""

import gzip
import math
import shutil
from pathlib import Path

import pytest

from airbo import Campaign
from airbo.campaign import FileError, missed, parameter_tables
from tests.campaign.common import write

DATA = Path(__file__).parent / "data-0.1.0"


def unpacked(name: str, folder: Path) -> Path:
    """Copy a saved campaign, and unpack its storage."""
    shutil.copytree(DATA / name, folder, dirs_exist_ok=True)
    for packed in folder.glob("*.gz"):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder / "campaign.toml"


def seen(campaign: Campaign) -> list[dict]:
    """All experiments as the saved expectation lists them."""
    return [
        {
            "number": e.number, "design": e.design, "outcome": e.outcome, "value": e.value,
            "executed": dict(e.executed), "uncertainty": e.uncertainty,
        }
        for e in campaign.experiments
    ]  # fmt: skip


def near(design: dict, expected: dict) -> bool:
    """Say whether two designs are the same but for how well a search converged."""
    return design.keys() == expected.keys() and all(
        value == expected[name] or math.isclose(value, expected[name], rel_tol=1e-3)
        for name, value in design.items()
    )


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ('choices = ["1", 1]', "differ in what is written"),
        ("low = 0.0\nhigh = 1.0\nstep = 1e-7", "at most 1,000,000 values"),
        (
            "low = 0.0\nhigh = 1.0\nuncertainty = { kind = 'normal', std = 5000.0 }",
            "std must not exceed 1000",
        ),
    ],
)
def test_a_campaign_beyond_the_limits_of_today_can_be_read(tmp_path, parameter, message):
    text = f'name = "a"\nstorage = "journal:///a.journal"\n[parameters.k]\n{parameter}\n'
    path = write(tmp_path, text)
    with pytest.raises(FileError, match=message):
        Campaign.open(path)
    assert not (tmp_path / "a.journal").exists()
    with pytest.MonkeyPatch.context() as as_before:
        as_before.setattr(parameter_tables, "check_parameter", lambda parameter: None)
        as_before.setattr(missed, "check_uncertainty", lambda *uncertainty: None)
        with Campaign.open(path) as campaign:
            campaign.ask(2)
            campaign.tell(0, 1.5)
    with Campaign.open(path) as campaign:
        campaign.tell(1, 2.5)
        assert campaign.status().n_ok == 2
        assert list(campaign.export()["value"]) == [1.5, 2.5]
        assert len(campaign.history()) == 2
        for act in (campaign.ask, campaign.recommend, campaign.optimizer):
            with pytest.raises(FileError, match=f"{message}.*An earlier airbo accepted this"):
                act()
