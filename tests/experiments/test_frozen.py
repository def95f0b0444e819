"""The default that ships asks what the frozen commit asks, on which every stored result rests."""

import json
from pathlib import Path

import pytest

from tests.experiments.frozen import SETTINGS, answers

STORED = json.loads(Path(__file__).with_name("frozen.json").read_text(encoding="utf-8"))
NEAR = 1e-5
"""Of the range. Values that differ by 1e-13 move the next design by up to 1e-7 of it."""


@pytest.mark.parametrize("name", SETTINGS)
def test_the_default_asks_and_recommends_as_the_frozen_commit_does(name):
    told, frozen = STORED[name]["told"], STORED[name]["answers"]
    found = answers(SETTINGS[name], told)
    for which in ("next", "recommended"):
        for column, expected in frozen[which].items():
            if isinstance(expected, str):
                assert found[which][column] == expected
            else:
                assert found[which][column] == pytest.approx(expected, rel=0, abs=2 * NEAR)
    assert found["mean"] == pytest.approx(frozen["mean"], rel=NEAR)
    assert found["std"] == pytest.approx(frozen["std"], rel=NEAR)
