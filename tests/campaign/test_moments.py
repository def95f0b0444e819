"""Somebody else acts, or a process is killed, in the worst moment: nothing is lost or doubled."""

import itertools
import time
from datetime import datetime, timedelta

import pandas as pd
import pytest

from airbo import Campaign
from airbo.campaign import AlreadyTold, CampaignError, StorageError, ledger, storage
from airbo.campaign.experiment import elapsed
from airbo.campaign.optuna import optimizer_of
from tests.campaign.common import LINE, SQLITE, edited, meanwhile, reopened, values, write
from tests.campaign.processes import WRITES


class Killed(BaseException):
    """The process ends here."""


def kill():
    raise Killed


# -- telling


def test_only_one_of_two_tellers_is_told_on_sqlite(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.1)
    path = write(tmp_path, SQLITE)
    ours, theirs = Campaign.open(path), Campaign.open(path)
    ours.ask()
    refused = []

    def tell_too():
        with pytest.raises(StorageError, match="It is locked"):  # they would wait
            theirs.tell(0, 2.0)
        refused.append(True)

    database = ours.storage._backend
    meanwhile(monkeypatch, database, "_set_trial_value_without_commit", tell_too)
    assert ours.tell(0, 1.0).done == "told"
    assert refused
    with pytest.raises(AlreadyTold):
        theirs.tell(0, 2.0)
    assert values(reopened(ours)) == values(theirs) == {0: 1.0}


def test_a_value_keeps_its_own_measurement(two, monkeypatch):
    ours, theirs = two
    ours.ask()

    def measured_elsewhere():
        meanwhile(monkeypatch, theirs.storage, "set_trial_state_values", kill)
        with pytest.raises(Killed):
            theirs.tell(0, 9.0, executed={"x": 0.9})

    meanwhile(monkeypatch, ours.storage, "set_trial_state_values", measured_elsewhere)
    told = ours.tell(0, 1.0, executed={"x": 0.1})
    assert (told.done, told.experiment.number) == ("told", 0)
    assert dict(reopened(ours).experiment(0).executed) == {"x": 0.1}
    with pytest.raises(AlreadyTold):
        theirs.tell(0, 9.0, executed={"x": 0.9})


def test_who_adds_a_design_hears_of_their_own(two, monkeypatch):
    ours, theirs = two
    meanwhile(monkeypatch, ours.storage, "create_new_trial", lambda: theirs.tell({"x": 0.5}, 7.0))
    assert ours.tell({"x": 0.5}, 1.0).experiment.value == 1.0
    assert values(theirs) == {0: 7.0, 1: 1.0}


def test_contradicting_outcomes_of_one_experiment_are_refused_together(tmp_path):
    c = Campaign.open(write(tmp_path))
    c.ask(2)
    with pytest.raises(CampaignError, match="Experiment 1 is reported twice, with different"):
        c.tell_all([(0, 1.0), (1, 2.0), (1, 3.0)])
    assert values(c) == {}
    assert [t.done for t in c.tell_all([(0, 1.0), (0, 1.0)])] == ["told", "already told"]


def test_what_was_asked_as_exact_stays_so(tmp_path):
    exact = edited(LINE, 'uncertainty = { kind = "normal", std = 0.05 }\n', "")
    c = Campaign.open(write(tmp_path, exact))
    c.ask(2)
    c.tell(1, 1.0)
    c = Campaign.open(write(tmp_path, LINE))
    c.tell(0, 2.0)
    c.tell(1, 3.0, correct=True)
    c.tell({"x": 0.5}, 4.0)
    assert [e.uncertainty == [] for e in c.experiments] == [True, True, False]


# -- corrections and imports


@pytest.mark.parametrize("method", ["get_all_trials", "get_study_user_attrs"])
@pytest.mark.parametrize("after", [False, True])
def test_an_experiment_is_there_while_it_is_corrected(two, monkeypatch, method, after):
    ours, theirs = two
    ours.tell({"x": 0.5}, 1.0)

    def correct():
        theirs.tell(0, 2.0, correct=True)

    meanwhile(monkeypatch, ours.storage, method, correct, after)
    assert values(ours) in ({0: 1.0}, {0: 2.0})
    assert values(ours) == values(theirs) == {0: 2.0}


@pytest.mark.parametrize("value", [2.0, None])
def test_a_correction_counts_for_all_as_soon_as_it_is_committed(two, monkeypatch, value):
    ours, theirs = two
    ours.tell({"x": 0.5}, 1.0)
    meanwhile(monkeypatch, theirs.storage, "set_trial_state_values", kill)
    with pytest.raises(Killed):
        theirs.tell(0, value, correct=True)
    assert values(ours) == {0: value}
    assert ours.tell(0, value).done == "already told"
    [seen] = optimizer_of(ours.study).observations["value"]
    assert (seen == value) if value is not None else seen != seen
    assert values(reopened(ours)) == {0: value}


def test_rows_that_are_discarded_while_they_are_committed_count(two, monkeypatch):
    ours, theirs = two
    ours.tell({"x": 0.5}, 1.0)

    def discard():
        record = theirs.ledger.record()
        theirs.ledger.discard_stale(record, datetime.now() + 2 * ledger.STALE)

    meanwhile(monkeypatch, ours.storage, "set_study_user_attr", discard)
    assert ours.tell(0, 2.0, correct=True).experiment.value == 2.0
    assert values(theirs) == values(reopened(ours)) == {0: 2.0}
    assert list(optimizer_of(theirs.study).observations["value"]) == [2.0]


def test_a_table_imported_by_two_at_once_counts_once(two, monkeypatch, tmp_path):
    ours, theirs = two
    table = tmp_path / "data.csv"
    table.write_text("x,value\n0.1,1\n0.2,2\n")
    meanwhile(monkeypatch, ours.storage, "create_new_trial", lambda: theirs.import_table(table))
    ours.import_table(table)
    for c in (ours, theirs, reopened(ours)):
        assert sorted(values(c).values()) == [1.0, 2.0]
        assert sorted(optimizer_of(c.study).observations["value"]) == [1.0, 2.0]


# -- changing one's mind


def seen(campaign):
    """All that people see, and all that a model knows."""
    rows = [
        (e.number, e.design["x"], e.outcome, e.value, dict(e.executed), e.excluded, e.notes)
        for e in campaign.experiments
    ]
    return rows, sorted(optimizer_of(campaign.study).observations["value"].dropna())


CHANGES = {
    "undo a tell": lambda c: c.undo(),
    "undo a correction": lambda c: c.undo(),
    "undo an import": lambda c: c.undo(),
    "undo a new design": lambda c: c.undo(),
    "undo another design than asked": lambda c: c.undo(),
    "exclude": lambda c: c.exclude(2, "loose"),
    "note": lambda c: c.note(1, "smoke"),
    "another design than asked": lambda c: c.tell(1, 4.0, design={"x": 0.91}),
    "correct to given up": lambda c: c.give_up(2, correct=True),
}
BEFORE = {
    "undo a tell": lambda c: c.tell(0, 1.0, executed={"x": 0.1}),
    "undo a correction": lambda c: c.tell(2, 7.0, correct=True),
    "undo an import": lambda c: c.import_table(pd.DataFrame({"x": [0.1, 0.2], "value": [1, 2]})),
    "undo a new design": lambda c: c.tell({"x": 0.3}, 3.0),
    "undo another design than asked": lambda c: c.tell(1, 4.0, design={"x": 0.91}),
}


def killed_before(monkeypatch, storage, n):
    """End the process just before write number ``n`` to a storage."""
    count = itertools.count()

    def counted(called):
        def write(*args, **kwargs):
            if next(count) == n:
                raise Killed
            return called(*args, **kwargs)

        return write

    for name in WRITES:
        monkeypatch.setattr(storage, name, counted(getattr(storage, name)))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_there_whole_or_not_at_all_wherever_its_writer_is_killed(
    tmp_path, monkeypatch, name
):
    change, prepare = CHANGES[name], BEFORE.get(name, lambda c: None)
    outcomes = []
    for n in itertools.count():
        folder = tmp_path / str(n)
        folder.mkdir()
        ours = Campaign.open(write(folder))
        ours.ask(2)
        ours.tell({"x": 0.5}, 5.0)
        prepare(ours)
        before = seen(ours)
        with monkeypatch.context() as patch:
            killed_before(patch, ours.storage, n)
            try:
                change(ours)
            except Killed:
                outcomes.append(seen(reopened(ours)) == before)
                theirs = reopened(ours)
                if outcomes[-1]:
                    change(theirs)  # nothing had happened: it can be repeated
                assert seen(theirs) == after(tmp_path / f"{n} after", prepare, change)
                continue
        break
    assert outcomes == sorted(outcomes, reverse=True)  # from one write on, it is there
    assert outcomes[0]


def after(folder, prepare, change):
    """What there is where nobody is killed."""
    folder.mkdir()
    c = Campaign.open(write(folder))
    c.ask(2)
    c.tell({"x": 0.5}, 5.0)
    prepare(c)
    change(c)
    return seen(c)


def test_two_that_undo_at_once_take_back_one_change(two, monkeypatch):
    ours, theirs = two
    ours.ask()
    ours.tell({"x": 0.5}, 1.0)
    ours.tell(0, 2.0)
    meanwhile(monkeypatch, ours.storage, "set_study_user_attr", theirs.undo)
    ours.undo()
    for c in (ours, theirs, reopened(ours)):
        assert values(c) == {1: 1.0}
        assert [e.number for e in c.experiments if e.is_pending] == [0]
    assert theirs.tell(0, 3.0).done == "told"
    with pytest.raises(AlreadyTold):
        ours.tell(0, 4.0)
    assert values(reopened(ours)) == {0: 3.0, 1: 1.0}


def test_what_was_told_after_one_undo_survives_the_other(two, monkeypatch):
    ours, theirs = two
    ours.ask()
    ours.tell(0, 2.0)

    def undo_and_tell():
        theirs.undo()
        theirs.tell(0, 3.0)

    meanwhile(monkeypatch, ours.storage, "set_study_user_attr", undo_and_tell)
    ours.undo()
    assert values(ours) == values(theirs) == values(reopened(ours)) == {0: 3.0}


def test_a_correction_survives_an_undo_in_the_same_moment(two, monkeypatch):
    ours, theirs = two
    ours.ask()
    ours.tell(0, 2.0)
    correct = lambda: theirs.tell(0, 3.0, correct=True)  # noqa: E731
    meanwhile(monkeypatch, ours.storage, "set_study_user_attr", correct)
    ours.undo()
    assert values(ours) == values(theirs) == values(reopened(ours)) == {0: 3.0}


def test_another_design_gives_way_to_who_told_the_experiment_first(two, monkeypatch):
    ours, theirs = two
    ours.ask()
    meanwhile(monkeypatch, ours.storage, "set_study_user_attr", lambda: theirs.tell(0, 1.0))
    with pytest.raises(AlreadyTold):
        ours.tell(0, 2.0, design={"x": 0.9})
    assert values(ours) == values(theirs) == values(reopened(ours)) == {0: 1.0}


# -- giving up


@pytest.mark.parametrize("other", ["tidy", "tell"])
def test_two_that_tidy_at_once_both_go_on(tmp_path, monkeypatch, other):
    path = write(tmp_path, "give_up_after_hours = 0\n" + LINE)
    ours, theirs = Campaign.open(path), Campaign.open(path)
    ours.ask()
    act = {"tidy": theirs.tidy, "tell": lambda: theirs.tell(0, 1.0)}[other]
    meanwhile(monkeypatch, ours.storage, "set_trial_user_attr", act)
    assert ours.tidy() == []
    assert ours.experiment(0).outcome == ("given up" if other == "tidy" else "ok")


@pytest.mark.parametrize("method", ["set_trial_user_attr", "set_trial_state_values"])
def test_what_somebody_has_answered_cannot_be_given_up(two, monkeypatch, method):
    ours, theirs = two
    ours.ask()
    meanwhile(monkeypatch, ours.storage, method, lambda: theirs.tell(0, 1.0))
    with pytest.raises(AlreadyTold):
        ours.give_up(0)
    assert values(ours) == {0: 1.0}


def test_a_night_in_which_clocks_are_changed_is_as_long_as_others(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    before, after = datetime(2026, 3, 29, 1, 59, 59), datetime(2026, 3, 29, 3, 0, 0)
    try:
        assert elapsed(before, after) == timedelta(seconds=1)
        assert elapsed(None, after) == timedelta(0)
    finally:
        monkeypatch.undo()
        time.tzset()
