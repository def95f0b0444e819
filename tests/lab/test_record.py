"""The laws of the fold: what events add up to."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from airbo.lab.events import (
    Asked,
    Begun,
    Event,
    Excluded,
    Noted,
    Told,
    Undone,
    body_of,
    fact_from,
)
from airbo.lab.record import fold

FILE = {"uncertainty": [], "outcomes": {"value": "mm"}}
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
NUMBERS = st.integers(0, 3)
VALUES = st.floats(-9, 9)


def event(seq, fact, call=None):
    return Event(seq, BEGUN + timedelta(seconds=seq), "ann", call or f"k{seq}", fact, f"d{seq}")


def facts(number=NUMBERS):
    """Any event about an experiment, whether it makes sense or not."""
    design = st.fixed_dictionaries({"x": VALUES})
    texts = st.sampled_from(["why", "new batch"])
    return st.one_of(
        st.builds(Asked, number, design),
        st.builds(Told, number, design, st.fixed_dictionaries({"value": VALUES})),
        st.builds(Told, number, design, infeasible=st.booleans(), gave_up=st.booleans()),
        st.builds(Noted, number, texts),
        st.builds(Excluded, number, st.none() | texts),
    )


class Folding(RuleBasedStateMachine):
    """Anything may happen, in any order; what was undone never happened."""

    def __init__(self):
        super().__init__()
        self.events = [event(1, Begun(FILE))]
        self.states = [fold(self.events).experiments]
        """The experiments after each event that stands."""
        self.standing = []
        """The positions of these events."""

    def add(self, fact):
        self.events.append(event(len(self.events) + 1, fact))

    @rule(fact=facts())
    def happen(self, fact):
        self.add(fact)
        self.standing.append(self.events[-1].seq)
        self.states.append(fold(self.events).experiments)

    @precondition(lambda self: self.standing)
    @rule()
    def undo_the_last_one(self):
        self.add(Undone([self.standing.pop()]))
        self.states.pop()
        assert fold(self.events).experiments == self.states[-1]

    @precondition(lambda self: self.standing)
    @rule(data=st.data())
    def undoing_any_event_is_leaving_it_out(self, data):
        seq = data.draw(st.sampled_from(self.standing))
        undone = [*self.events, event(len(self.events) + 1, Undone([seq]))]
        left_out = [e for e in self.events if e.seq != seq]
        assert fold(undone).experiments == fold(left_out).experiments

    @invariant()
    def every_prefix_can_be_folded(self):
        for n in range(len(self.events) + 1):
            record = fold(self.events[:n])
            assert len(record.history) == n

    @invariant()
    def the_history_says_what_counts(self):
        standing = [c.events[0] for c in fold(self.events).history if not c.undone and c.numbers]
        undone = {seq for e in self.events if isinstance(e.fact, Undone) for seq in e.fact.events}
        assert not undone & set(standing)

    @invariant()
    def numbers_are_never_given_twice(self):
        used = {e.fact.number for e in self.events if hasattr(e.fact, "number")}
        assert fold(self.events).next_number not in used


TestFolding = Folding.TestCase
TestFolding.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)


@given(st.lists(facts(st.just(0)), max_size=6), st.lists(facts(st.just(1)), max_size=6), st.data())
def test_the_order_of_independent_events_does_not_matter(ones, others, data):
    """Events about two experiments may be mixed in any way."""
    order = data.draw(st.permutations([0] * len(ones) + [1] * len(others)))
    queues = [iter(ones), iter(others)]
    one_by_one = [*ones, *others]
    mixed = [next(queues[i]) for i in order]

    def folded(given):
        started = datetime(2026, 1, 1, tzinfo=UTC)  # all at the same time
        events = [Event(i, started, "ann", f"k{i}", f) for i, f in enumerate([Begun(FILE), *given])]
        return fold(events).experiments

    assert folded(one_by_one) == folded(mixed)


@given(facts())
def test_an_event_is_the_same_after_a_round_trip(fact):
    assert fact_from(fact.kind, body_of(fact)) == fact


def test_what_a_newer_version_adds_to_an_event_is_left_alone():
    body = json.dumps({**json.loads(body_of(Noted(3, "hot"))), "mood": "good"})
    assert fact_from("noted", body) == Noted(3, "hot")


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind 'predicted'"):
        fact_from("predicted", "{}")


def history(*given):
    return fold([event(i, fact) for i, fact in enumerate([Begun(FILE), *given], 1)]).history


def test_the_history_says_in_words_what_changed():
    asked, told = Asked(0, {"x": 1.0}), Told(0, {"x": 1.0}, {"value": 2.5})
    corrected = Told(0, {"x": 1.5}, {"value": 3.5}, {"x": 1.25})
    found = history(asked, told, corrected, Undone([4]))
    assert [(c.what, c.text, c.undone) for c in found[1:]] == [
        ("asked", "x = 1", False),
        ("told", "2.5 mm", False),
        (
            "corrected",
            "2.5 mm → 3.5 mm, x 1 → 1.5, measured x not measured → 1.25",
            True,
        ),
        ("undone", f"corrected: {found[3].text}", False),
    ]


def test_an_outcome_that_is_measured_later_corrects_nothing():
    first = Told(0, {"x": 1.0}, {"yield": 80.0})
    [*_, later] = history(first, Told(0, {"x": 1.0}, {"yield": 80.0, "leak": 0.1}))
    assert later.what == "told"


def test_who_told_it_first_stays_when_somebody_corrects_it():
    told = event(2, Told(0, {"x": 1.0}, {"value": 1.0}))
    corrected = Event(3, BEGUN, "bob", "k3", Told(0, {"x": 1.0}, {"value": 2.0}))
    record = fold([event(1, Begun(FILE)), told, corrected])
    assert (record.get(0).by, record.get(0).told) == ("ann", told.at)
    assert record.history[-1].by == "bob"


def test_rows_of_an_import_are_one_change():
    row = [Told(i, {"x": 1.0}, {"value": 1.0 * i}, source="old.csv") for i in range(3)]
    events = [event(1, Begun(FILE)), *(event(i, f, "import") for i, f in enumerate(row, 2))]
    [_, change] = fold(events).history
    assert (change.what, change.about, change.text) == ("imported", "0-2", "3 rows of old.csv")
