import math

import numpy as np
import pandas as pd
import pytest

from airbo import Integer, Maximize, Space
from airbo import uncertainty as unc
from airbo.observed import check_executed, check_value
from airbo.optimizer.reading import NOT_GIVEN, Reader
from airbo.optimizer.record import History, Observation, Points

SPACE = Space({"x": (0, 1), "n": Integer(1, 3), "t": ["A", "B"]})
READER = Reader(SPACE, {"value": Maximize()}, lambda observation: None, lambda design: None)
DESIGN = {"x": 0.5, "n": 2, "t": "A"}


def test_observations_become_a_table_with_their_types():
    rows = [Observation(DESIGN, {"value": 1.5}), Observation(DESIGN, {}, {"x": 0.6})]
    table = READER.table(rows)
    assert [*table] == ["x", "n", "t", "value", "status", "executed_x"]
    assert table["n"].dtype == int
    assert table["status"].tolist() == ["ok", "failed"]
    assert table["executed_x"].tolist() == pytest.approx([math.nan, 0.6], nan_ok=True)


def test_a_table_without_observations_has_the_columns_all_the_same():
    table = READER.table([])
    assert [*table] == ["x", "n", "t", "value", "status"]
    assert len(table) == 0


def test_what_a_table_holds_is_what_was_put_into_it():
    rows = [
        Observation(DESIGN, {"value": 1.5}, {"x": 0.6, "t": "B"}),
        Observation(DESIGN, {"value": 2.5}),
    ]
    assert told(READER.table(rows)) == rows


def test_columns_may_stand_in_any_order():
    table = pd.DataFrame([{"value": 1.0, "t": "A", "n": 2, "x": 0.5}])
    assert told(table) == [Observation(DESIGN, {"value": 1.0})]


def told(table):
    return READER.read(table, NOT_GIVEN, None, None, None, allow_outside=False, infeasible=False)


def test_executed_inputs_become_plain_values():
    executed = {"x": np.float64(1.2), "n": 2.5, "t": np.str_("B")}
    plain = check_executed(SPACE, DESIGN, executed)
    assert plain == {"x": 1.2, "n": 2.5, "t": "B"}
    assert [type(v) for v in plain.values()] == [float, float, str]


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.array([[1.0]])], ids=repr)
def test_values_become_floats(value):
    assert check_value(value) == 1.0
    assert type(check_value(value)) is float


@pytest.mark.parametrize("value", [1e101, -1e101, math.inf])
def test_penalties_in_place_of_failures_are_refused(value):
    with pytest.raises(ValueError, match="failed"):
        check_value(value)


# -- history


def history(*values, design=DESIGN):
    told = [
        Observation(design | {"x": i / 10}, {} if v is None else {"value": v})
        for i, v in enumerate(values)
    ]
    return History(Points(SPACE), told)


def test_known_observations_are_those_with_a_value():
    assert [o.value for o in history(1.0, None, 2.0).known] == [1.0, 2.0]


def test_tried_designs_are_distinct_and_inside_where_some_are():
    record = history(1.0, 2.0)
    outside = Observation(DESIGN | {"x": 1.5}, {"value": 3.0})
    record.observations += [record.observations[0], outside]
    assert [d["x"] for d in record.tried] == [0.0, 0.1]
    assert History(Points(SPACE), [outside]).tried == [outside.design]


def test_designs_without_a_value_are_waiting():
    record = history(1.0, None)
    record.ask(DESIGN)
    assert [o.design["x"] for o in record.waiting] == [0.1, 0.5]
    assert record.n_asked == 1


def test_a_failure_is_recent_until_as_many_values_have_come_in_as_the_design_has_failed():
    failed = Observation(DESIGN, {})
    record = history(1.0)
    for n_failures in (1, 2, 3):
        record.tell(failed)
        for _ in range(n_failures):
            assert record.recently_failed == [DESIGN]
            record.tell(Observation(DESIGN | {"t": "B"}, {"value": 1.0}))
        assert record.recently_failed == []


def test_one_answer_takes_one_of_two_equal_pending_designs():
    record = History(Points(SPACE))
    record.ask(dict(DESIGN))
    record.ask(dict(DESIGN))
    record.tell(Observation(DESIGN, {"value": 1.0}, uncertainty=unc.Normal(0.1)))
    assert [o.design for o in record.pending] == [DESIGN]
    assert record.answer(DESIGN | {"x": 0.5 + 1e-8})
    assert not record.answer(DESIGN)
