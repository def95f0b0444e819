"""Nothing is final: what was told can be taken back, left out and remarked on."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airbo import Campaign
from airbo.lab import AlreadyTold, CampaignError, Doubtful
from airbo.lab import campaign as module
from airbo.lab.entry import far_values, is_far
from airbo.words import number
from tests.lab.common import LINE, campaign, value_of, write


@pytest.fixture
def c(tmp_path):
    """A campaign with two pending experiments."""
    with Campaign.open(write(tmp_path)) as found:
        found.ask(2)
        yield found


def state(c):
    """All that people see of the experiments."""
    return [
        (e.number, tuple(e.design.items()), e.outcome, value_of(e), dict(e.executed), e.excluded,
         e.notes, e.asked, repr(e.uncertainty))
        for e in c.experiments
    ]  # fmt: skip


def known(c):
    """How many experiments the model knows, and how many it expects."""
    model = c.optimizer()
    return len(model.observations), len(model.pending)


def import_rows(c):
    table = c.settings.path.with_name("rows.csv")
    table.write_text("x,value\n0.1,1\n0.2,2\n0.3,3\n")
    return c.import_table(table)


CHANGES = {
    "tell": lambda c: c.tell(0, 1.0, executed={"x": 0.3}),
    "tell several": lambda c: c.tell_all([(0, 1.0), (1, 2.0)]),
    "tell a new design": lambda c: c.tell({"x": 0.77}, 3.0),
    "tell under another uncertainty": lambda c: c.tell(0, 1.0, uncertainty=[]),
    "tell another design than asked": lambda c: c.tell(1, 4.0, design={"x": 0.91}),
    "fail": lambda c: c.fail(1),
    "fail with a reason": lambda c: c.fail(1, why="the tool broke"),
    "give up": lambda c: c.give_up(1),
    "import": import_rows,
    "correct": lambda c: c.tell(2, 9.0, correct=True),
    "correct to failed": lambda c: c.fail(2, correct=True),
    "correct to given up": lambda c: c.give_up(2, correct=True),
    "correct the design": lambda c: c.tell(2, 5.0, design={"x": 0.66}, correct=True),
    "tell late": lambda c: c.tell(3, 6.0),
    "exclude": lambda c: c.exclude(2, "the sensor was loose"),
    "note": lambda c: c.note(1, "new batch"),
}


@pytest.fixture
def begun(c):
    """Two pending experiments, one with a value and a measurement, and one given up."""
    c.tell({"x": 0.5}, 5.0, executed={"x": 0.52})
    [fourth] = c.ask()
    c.give_up(fourth.number)
    return c


@pytest.mark.parametrize("name", CHANGES)
def test_undo_brings_back_what_was_there_before(begun, name):
    before, model = state(begun), known(begun)
    CHANGES[name](begun)
    after = state(begun)
    assert after != before
    begun.undo()
    assert state(begun) == before
    assert known(begun) == model
    assert state(Campaign.open(begun.settings.path)) == before
    CHANGES[name](begun)  # and it can be done again
    assert [row[:7] for row in state(begun)][:4] == [row[:7] for row in after][:4]
    assert sorted(str(row[1:4]) for row in state(begun)) == sorted(str(r[1:4]) for r in after)


def test_undo_goes_back_to_the_beginning_step_by_step(c):
    steps = [
        lambda: c.tell(0, 1.0),
        lambda: c.tell(0, 2.0, correct=True),
        lambda: c.tell({"x": 0.77}, 3.0),
        lambda: c.exclude(0, "loose"),
        lambda: c.tell(0, 4.0, correct=True, design={"x": 0.4}),
        lambda: c.include(0),
        lambda: import_rows(c),
        lambda: c.fail(1),
        lambda: c.tell(1, 5.0, correct=True),
        lambda: c.note(1, "new batch"),
    ]
    states = []
    for step in steps:
        states.append(state(c))
        step()
        here = state(c)
        c.note(0, "a detour")
        c.undo()
        assert state(c) == here != states[-1]
    for before in reversed(states):
        c.undo()
        assert state(c) == before
    with pytest.raises(CampaignError, match="There is nothing to undo"):
        c.undo()


def test_a_correction_that_was_undone_can_be_corrected_otherwise(c):
    c.tell(0, 1.0)
    c.tell(0, 139.0, correct=True)
    c.undo()
    c.tell(0, 13.9, correct=True)
    assert value_of(c.experiment(0)) == 13.9
    c.undo()
    assert value_of(c.experiment(0)) == 1.0
    c.undo()
    assert c.experiment(0).is_pending


def test_an_import_that_was_undone_can_be_imported_again_and_counts_once(c):
    import_rows(c)
    c.undo()
    assert known(c) == (0, 2)
    assert not import_rows(c).already
    assert import_rows(c).already
    assert known(c) == (3, 2)


def test_what_is_pending_again_is_told_by_one_only(c, tmp_path):
    c.tell(0, 1.0)
    c.undo()
    with Campaign.open(c.settings.path) as other:
        other.tell(0, 2.0)
    with pytest.raises(AlreadyTold):
        c.tell(0, 3.0)
    assert value_of(c.experiment(0)) == 2.0


def test_asking_is_not_undone(tmp_path):
    c = campaign(tmp_path)
    c.ask()
    with pytest.raises(CampaignError, match="nothing to undo"):
        c.undo()


def test_the_model_does_not_know_what_is_excluded(c):
    c.tell_all([(0, 1.0), (1, 9.0)])
    c.exclude(1, "loose")
    assert known(c) == (1, 0)
    assert c.status().best.number == 0
    assert c.status().n_excluded == 1
    assert c.experiment(1).excluded == "loose"
    c.include(1)
    assert known(c) == (2, 0)
    assert c.experiment(1).excluded is None


def test_an_exclusion_stays_when_the_value_is_corrected(c):
    c.tell(0, 1.0)
    c.exclude(0, "loose")
    c.tell(0, 2.0, correct=True)
    assert (value_of(c.experiment(0)), c.experiment(0).excluded) == (2.0, "loose")
    assert known(c) == (0, 1)


def test_what_cannot_be_changed_is_refused(c):
    with pytest.raises(CampaignError, match="Experiment 0 has no outcome that could be excluded"):
        c.exclude(0, "why not")
    with pytest.raises(CampaignError, match="Experiment 0 is not excluded"):
        c.include(0)
    with pytest.raises(CampaignError, match="The text is empty"):
        c.note(0, " ")
    with pytest.raises(CampaignError, match="There is no experiment 9"):
        c.note(9, "?")


def test_another_design_than_asked_takes_its_place(c):
    [asked, _] = c.experiments
    told = c.tell(0, 4.0, design={"x": 0.91})
    assert (told.done, told.experiment.number) == ("told", 0)
    assert told.changes == ["pending → 4", f"x {asked.design['x']:.6g} → 0.91"]
    assert c.experiment(0).asked == asked.asked
    assert known(c) == (1, 1)
    assert c.tell(0, 4.0).done == "already told"
    assert c.tell(0, 4.0, design={"x": 0.91}).done == "already told"
    with pytest.raises(AlreadyTold):
        c.tell(0, 4.0, design={"x": 0.92})
    with pytest.raises(CampaignError, match="Parameter 'x': value must be between 0 and 1"):
        c.tell(1, 4.0, design={"x": 1.2})
    assert c.tell(1, 4.0, design={"x": 1.2}, allow_outside=True).done == "told"
    with pytest.raises(CampaignError, match="Unknown parameter 'y'"):
        c.tell(1, 4.0, design={"y": 1.2})


def test_the_history_says_who_did_what_and_when(c):
    ann, ben = c.signed("ann"), c.signed("ben")
    ann.tell(0, 1.0, executed={"x": 0.3})
    ben.tell(0, 2.0, correct=True)
    ann.fail(1)
    import_rows(ben)
    ann.exclude(0, "loose")
    ben.note(1, "smoke")
    ann.undo()
    ben.include(0)
    found = [
        (h.by, h.what, h.about, h.text, h.undone)
        for h in c.history()
        if h.undoable or h.what == "undone"
    ]
    assert found == [
        ("ann", "told", "0", "1, measured x = 0.3", False),
        ("ben", "corrected", "0", "1 → 2", False),
        ("ann", "failed", "1", "failed", False),
        ("ben", "imported", "2-4", "3 rows of rows.csv", False),
        ("ann", "excluded", "0", "loose", False),
        ("ben", "noted", "1", "smoke", True),
        ("ann", "undone", "1", "noted: smoke", False),
        ("ben", "included", "0", "the model knows it again", False),
    ]
    times = [h.at for h in c.history()]
    assert times == sorted(times)
    assert c.experiment(0).by == "ann"  # who measured it


def test_a_clock_that_goes_back_does_not_change_the_order(c, monkeypatch):
    class Slow(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2001, 1, 1, tzinfo=UTC)

    c.tell(0, 1.0)
    monkeypatch.setattr(module, "datetime", Slow)
    c.note(0, "later")
    monkeypatch.undo()
    assert [h.what for h in c.history()][-2:] == ["told", "noted"]
    assert [h.what for h in c.undo()] == ["noted"]


# -- slips of the hand


def test_an_executed_input_far_outside_is_questioned(c):
    with pytest.raises(Doubtful, match=r"x: an executed input of 99 is far outside .* 0 to 1 mm"):
        c.tell(0, 1.0, executed={"x": 99})
    assert c.experiment(0).is_pending
    assert c.tell(0, 1.0, executed={"x": 1.05}).done == "told"
    assert c.tell(1, 1.0, executed={"x": 99}, sure=True).done == "told"
    assert c.tell(1, 1.0, executed={"x": 99}).done == "already told"
    assert c.tell(1, 2.0, correct=True).experiment.executed == {"x": 99}


def test_a_value_far_from_all_others_is_questioned(c):
    for i in range(8):
        c.tell({"x": i / 10}, 10.0 + i)
    with pytest.raises(Doubtful, match="value = 139 is far from all others, which are 10 to 17"):
        c.tell(0, 139.0)
    assert c.tell(0, 25.0).done == "told"
    assert c.tell(1, 139.0, sure=True).done == "told"


def test_a_reason_is_a_note_of_the_same_change_and_counts_once(c):
    for _ in range(2):
        c.fail(0, why=" the tool broke ")
        assert c.experiment(0).notes == ("the tool broke",)
    c.fail(1)
    c.fail(1, why="the tool broke")  # said later
    assert c.experiment(1).notes == ("the tool broke",)
    c.give_up(1, correct=True, note="no time")
    assert c.experiment(1).notes == ("the tool broke", "no time")
    with pytest.raises(CampaignError, match="The text is empty"):
        c.fail(0, why=" ")


PLAUSIBLE = LINE + '[outcomes.yield]\ngoal = "maximize"\nunit = "%"\nlow = 0\nhigh = 100\n'


@pytest.mark.parametrize("value", [-0.1, 621.0])
def test_a_value_outside_its_plausible_range_is_questioned_from_the_first_one_on(tmp_path, value):
    with campaign(tmp_path, PLAUSIBLE) as c:
        asks = f"yield = {number(value)} is not plausible: the file says between 0 and 100 %."
        with pytest.raises(Doubtful, match=asks):
            c.tell({"x": 0.5}, {"yield": value})
        assert c.tell({"x": 0.5}, {"yield": 62.1}).done == "added"
        assert c.tell({"x": 0.6}, {"yield": value}, sure=True).done == "added"
        table = tmp_path / "rows.csv"
        table.write_text(f"x,yield\n0.1,50\n0.2,{value}\n")
        with pytest.raises(Doubtful) as caught:
            c.import_table(table)
        assert caught.value.doubts == [f"Line 3: {asks}"]


@pytest.mark.parametrize(("value", "is_questioned"), [(5.5, True), (550.0, True), (170.0, False)])
def test_a_decimal_slip_is_questioned_among_a_few_values(c, value, is_questioned):
    for x, known in ((0.1, 52.0), (0.2, 55.0), (0.3, 60.0)):
        c.tell({"x": x}, known)
    if is_questioned:
        with pytest.raises(Doubtful, match="far from all others, which are 52 to 60"):
            c.tell(0, value)
    else:
        c.tell(0, value)


def test_a_report_is_taken_back_with_its_note(c):
    c.tell(0, 1.5, note="new batch")
    assert c.experiment(0).notes == ("new batch",)
    assert [h.what for h in c.undo()] == ["told", "noted"]
    assert (c.experiment(0).outcome, c.experiment(0).notes) == ("pending", ())


def test_a_table_is_questioned_as_a_whole_before_anything_is_stored(tmp_path, c):
    rows = [f"0.{i},{10 + i},0.{i}" for i in range(1, 9)]
    rows[2:2] = ["0.25,139,0.25", "0.35,12,77"]  # lines 4 and 5
    table = tmp_path / "done.csv"
    table.write_text("\n".join(["x,value,executed_x", *rows]))
    with pytest.raises(Doubtful) as caught:
        c.import_table(table)
    assert caught.value.doubts == [
        "Line 4: value = 139 is far from all others, which are 11 to 18.",
        "Line 5: x: an executed input of 77 is far outside the range 0 to 1 mm.",
    ]
    assert not any(h.undoable for h in c.history())
    assert len(c.import_table(table, sure=True).numbers) == 10
    assert c.import_table(table).already


@given(st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=20), st.floats(-1e3, 1e3))
def test_no_value_that_is_far_from_all_others_is_overlooked(values, other):
    values = [*values, other]
    others = [(value, values[:i] + values[i + 1 :]) for i, value in enumerate(values)]
    assert far_values(values) == {value for value, rest in others if is_far(value, rest)}


# -- digits


def test_what_is_asked_has_the_digits_that_the_machine_holds(c):
    asked = c.ask(6)
    assert all(e.design["x"] == round(e.design["x"], 2) for e in asked)  # the file says std 0.05
    c.tell_all([(e.number, e.design["x"]) for e in asked])
    best = c.recommend("anywhere")
    assert best.design["x"] == round(best.design["x"], 2)


@pytest.mark.filterwarnings("ignore::airbo.optimizer.TooLittleDataWarning")
def test_a_recommended_design_that_was_tried_stays_as_it_was(c):
    c.tell({"x": 0.123456789}, 1.0)
    c.tell({"x": 0.9}, 0.5)
    assert c.recommend("observed").design == {"x": 0.123456789}
