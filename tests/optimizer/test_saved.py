"""States that version 0.1.0 wrote."""

import json
from pathlib import Path

import pytest

from airbo import Optimizer

SAVED = json.loads((Path(__file__).parent / "state-0.1.0.json").read_text())


@pytest.fixture
def as_it_landed(monkeypatch):
    """In 0.1.0, whole numbers landed anywhere."""
    monkeypatch.setattr("airbo.coordinates._rounded", lambda block, *_: block)


@pytest.mark.usefixtures("as_it_landed")
def test_a_state_of_0_1_0_is_read_and_written_as_it_was():
    restored = Optimizer.from_json(json.dumps(SAVED["state"]))
    assert json.loads(restored.to_json()) == SAVED["state"]


@pytest.mark.usefixtures("as_it_landed")
def test_an_optimizer_restored_from_0_1_0_answers_as_it_did(monkeypatch):
    restored = Optimizer.from_json(json.dumps(SAVED["state"]), surrogate="expectation")
    for name, number in (("N_RESTARTS", 8), ("N_RAW", 256)):  # as it searched then
        monkeypatch.setattr(f"airbo.optimizer.search.{name}", number)
    best, expected = restored.recommend("observed"), SAVED["expected"]
    assert best.design == expected["recommend"]
    assert best.mean == pytest.approx(expected["mean"], rel=1e-3)
    assert best.std == pytest.approx(expected["std"], rel=1e-2)
    assert restored.space.distance(restored.ask(), expected["ask"]) < 0.01
