"""A study in plain values, for programs that take it over."""

import math
from datetime import UTC

import optuna
import pytest
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from airbo import uncertainty as unc
from airbo.integrations.optuna import (
    EXECUTED,
    GAVE_UP,
    OUTCOMES,
    UNCERTAINTY,
    describe_uncertainty,
    read_study,
)
from tests.integrations.optuna.common import SQUARE, done


def filled(storage, **attributes):
    """A study with a trial in every state."""
    study = optuna.create_study(storage=storage, study_name="mill")
    own = describe_uncertainty({"x": unc.Normal(0.1)})
    said = {EXECUTED: {"x": 0.15}, UNCERTAINTY: own, OUTCOMES: {"leak": 0.3}, **attributes}
    study.add_trial(done({"x": 0.1, "y": 0.2}, 1.5, user_attrs=said))
    study.add_trial(done({"x": 0.3, "y": 0.4}, state=TrialState.FAIL))
    study.add_trial(done({"x": 0.5, "y": 0.6}, math.inf))
    gave_up = {GAVE_UP: True}
    study.add_trial(done({"x": 0.7, "y": 0.8}, state=TrialState.FAIL, user_attrs=gave_up))
    running = study.ask(SQUARE)
    study.enqueue_trial({"x": 0.25, "y": 0.75})
    limited = study.ask(SQUARE)  # the one that was enqueued
    limited.set_constraint("gap", -0.5)
    study.tell(limited, state=TrialState.FAIL)
    study.enqueue_trial({"x": 0.9})
    study.ask()  # has no parameters yet
    study.enqueue_trial({"x": 0.9, "y": 0.1})
    return own, running.params


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_study_is_read_whole(tmp_path, kind):
    url = f"{kind}:///{tmp_path / 'study'}"
    journal = JournalFileBackend(str(tmp_path / "study"))
    storage = RDBStorage(url) if kind == "sqlite" else JournalStorage(journal)
    own, running = filled(storage)
    told, failed, infinite, given_up, pending, limited, partial, planned = read_study(url, "mill")

    assert (told.number, told.design, told.state) == (0, {"x": 0.1, "y": 0.2}, "told")
    assert (told.values, told.outcomes, told.executed) == ((1.5,), {"leak": 0.3}, {"x": 0.15})
    assert told.uncertainty == own
    assert told.asked.tzinfo is told.told.tzinfo is UTC
    assert (failed.state, failed.values) == (infinite.state, infinite.values) == ("failed", ())
    assert given_up.state == "abandoned"
    assert (pending.state, pending.design) == ("pending", running)
    assert (limited.state, limited.values, limited.outcomes) == ("told", (), {"gap": -0.5})
    assert (partial.state, partial.design) == ("pending", {"x": 0.9})
    assert (planned.state, planned.design) == ("pending", {"x": 0.9, "y": 0.1})


def test_what_cannot_be_read_is_explained_and_nothing_is_created(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with pytest.raises(ValueError, match=r"There is no file .*study\.db"):
        read_study(url, "mill")
    with pytest.raises(ValueError, match="There is no file"):
        read_study(f"journal:///{tmp_path / 'study.log'}", "mill")
    assert not list(tmp_path.iterdir())
    with pytest.raises(
        ValueError, match=r"A storage is written like sqlite:///study\.db, got 'mill'"
    ):
        read_study("mill", "mill")
    optuna.create_study(storage=url, study_name="other")
    with pytest.raises(ValueError, match="There is no study 'mill' in sqlite:///"):
        read_study(url, "mill")
    (tmp_path / "study.db").write_text("no database at all, but long enough to be read as one" * 9)
    with pytest.raises(ValueError, match="cannot be read"):
        read_study(url, "mill")


def test_a_server_that_does_not_answer_is_named_without_its_password():
    with pytest.raises(ValueError, match="cannot be read") as caught:
        read_study("postgresql+psycopg://ann:s3cret@127.0.0.1:1/lab", "mill")
    assert "s3cret" not in str(caught.value)


def test_an_attribute_that_cannot_be_used_is_named(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    filled(url, **{EXECUTED: {"speed": 1.0}})
    with pytest.raises(ValueError, match="Trial 0: User attribute 'executed': unknown parameter"):
        read_study(url, "mill")
