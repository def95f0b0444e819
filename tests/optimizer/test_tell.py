import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch

from airbo import Float, Integer, Optimizer
from airbo import uncertainty as unc
from tests.optimizer.common import LINE, MILL, SQUARE, cheap, recommend, run

GOOD = {"speed": 80.0, "depth": 0.5, "passes": 2, "tool": "C"}


def mill(**settings):
    return cheap(MILL, {"speed": unc.Normal(2.0)}, **settings)


# -- what may be told


def test_told_designs_are_no_longer_pending():
    optimizer = Optimizer(LINE)
    first, second = optimizer.ask(2)
    optimizer.tell(second, 1.0)
    assert optimizer.pending == [first]


def test_designs_never_asked_for_replicates_and_any_order_are_accepted():
    optimizer = cheap()
    a, b = optimizer.ask(2)
    for design, value in [({"x": 0.123}, 1.0), (b, 2.0), (a, 3.0), (a, 4.0), ({"x": 0.123}, 5.0)]:
        optimizer.tell(design, value)
    assert optimizer.observations["x"].tolist() == [0.123, b["x"], a["x"], a["x"], 0.123]
    assert optimizer.observations["value"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert optimizer.pending == []


@pytest.mark.parametrize("rounded", [np.float32, lambda x: round(x, 7), lambda x: f"{x:.8g}"])
def test_a_design_told_with_its_last_digits_rounded_is_no_longer_pending(rounded):
    optimizer = Optimizer(SQUARE)
    x, y = optimizer.ask().values()
    optimizer.tell({"x": float(rounded(x)), "y": float(rounded(y))}, 1.0)
    assert optimizer.pending == []


@pytest.mark.parametrize(
    "value",
    [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.array([2.0]), torch.tensor(2.0),
     torch.tensor([2.0]), torch.tensor(2.0, requires_grad=True), Decimal(2)],
    ids=repr,
)  # fmt: skip
def test_every_kind_of_number_is_a_value(value):
    optimizer = Optimizer(LINE)
    optimizer.tell({"x": 0.5}, value)
    assert optimizer.observations["value"].tolist() == [2.0]
    assert Optimizer.from_json(optimizer.to_json()).observations.equals(optimizer.observations)


@pytest.mark.parametrize(
    "design",
    [{"x": np.float32(1)}, {"x": torch.tensor(1.0, dtype=torch.float32)}, {"x": 1},
     {"x": np.int64(1)}, {"x": 1 + 1e-9}, pd.Series({"x": 1.0})],
    ids=str,
)  # fmt: skip
def test_every_kind_of_number_is_a_parameter_and_rounding_at_a_bound_does_not_matter(design):
    optimizer = Optimizer(LINE)
    optimizer.tell(design, 2.0)
    assert optimizer.observations["x"].tolist() == [1.0]
    assert "1.0" in optimizer.to_json()


@pytest.mark.parametrize("space", [(0.7, 1.9), Float(0.7, 1.9, log=True)], ids=["linear", "log"])
def test_bounds_in_single_precision_are_bounds(space):
    optimizer = Optimizer({"x": space})
    for bound in (0.7, 1.9):
        optimizer.tell({"x": np.float32(bound)}, 1.0)
    assert optimizer.observations["x"].tolist() == pytest.approx([0.7, 1.9])


def test_a_tiny_log_parameter_is_not_rounded_to_its_bound():
    optimizer = Optimizer({"x": Float(1e-9, 1.0, log=True)})
    with pytest.raises(ValueError, match="'x'"):
        optimizer.tell({"x": 1e-10}, 1.0)


@pytest.mark.parametrize("failure", [None, math.nan, np.nan, pd.NA, pd.NaT], ids=repr)
def test_a_failed_experiment_is_kept_and_not_modelled(failure):
    told, reference = cheap(), cheap()
    for optimizer in (told, reference):
        run(optimizer, 3)
    told.tell({"x": 0.5}, failure)
    assert told.observations["status"].tolist() == ["ok", "ok", "ok", "failed"]
    assert math.isnan(told.observations["value"].iloc[-1])
    assert recommend(told) == recommend(reference)


# -- tables


def test_a_table_tells_what_single_calls_tell():
    table = pd.DataFrame({"x": [0.1, 0.5, 0.9], "value": [1.0, math.nan, 3.0]})
    one, many = cheap(), cheap()
    many.tell(table)
    for x, value in table.itertuples(index=False):
        one.tell({"x": x}, value)
    assert one.to_json() == many.to_json()


def test_a_name_for_the_column_of_values_is_refused():
    with pytest.raises(ValueError, match="columns with their names"):
        Optimizer(LINE).tell(pd.DataFrame({"x": [0, 1], "yield": [1, 2]}), value="yield")


def test_observations_of_one_optimizer_can_be_told_to_another():
    first, second = mill(), mill()
    first.tell(GOOD, 1.0, executed={"speed": 81.0})
    first.tell(GOOD | {"tool": "A"}, None)
    first.tell(GOOD | {"tool": "B"}, 2.0)
    second.tell(first.observations)
    pd.testing.assert_frame_equal(first.observations, second.observations)
    assert first.to_json() == second.to_json()


def test_a_row_whose_status_is_failed_has_failed():
    optimizer = Optimizer(LINE)
    status = [None, "OK", " Failed"]
    optimizer.tell(
        pd.DataFrame({"x": [0.1, 0.2, 0.5], "value": [1.0, 2.0, math.nan], "status": status})
    )
    assert list(optimizer.observations["value"].isna()) == [False, False, True]


def test_a_table_without_rows_tells_nothing():
    optimizer = Optimizer(LINE)
    optimizer.tell(pd.DataFrame({"x": [], "value": []}))
    assert len(optimizer.observations) == 0


BAD_TABLES = [
    ({"x": [0.1, 2.0], "value": [1.0, 2.0]}, "Row 1 of the table: Parameter 'x'"),
    ({"x": [2.0, 0.1], "value": [1.0, 2.0]}, "Row 0 of the table: Parameter 'x'"),
    ({"x": [0.1, math.nan], "value": [1.0, 2.0]}, "Row 1 of the table: Parameter 'x'"),
    ({"x": [0.1, 0.2], "value": [1.0, math.inf]}, "Row 1 of the table: The value"),
    ({"x": [0.1, 0.2], "value": [1.0, "2"]}, "Row 1 of the table: The value"),
    ({"x": [0.1], "value": [1.0], "status": ["aborted"]}, "Row 0 of the table: status must be"),
    (
        {"x": [0.1, 0.2], "value": [1.0, -999.0], "status": ["ok", "Failed"]},
        "Row 1 of the table: The experiment is failed, but it has outcomes: .*-999",
    ),
    ({"x": [0.1], "yield": [1.0]}, "no column 'value'"),
    ({"x": [0.1], "value": [1.0], "z": [1.0]}, "Unknown column 'z'"),
    ({"value": [1.0]}, "'x' is missing"),
    ({"x": [0.1], "value": [1.0], "executed_x": ["a"]}, "executed: Parameter 'x'"),
]


@pytest.mark.parametrize(("table", "message"), BAD_TABLES)
def test_a_table_with_one_mistake_tells_nothing(table, message):
    optimizer = Optimizer(LINE)
    optimizer.ask()
    before = optimizer.to_json()
    with pytest.raises((ValueError, TypeError), match=message):
        optimizer.tell(pd.DataFrame(table))
    assert optimizer.to_json() == before


def test_a_table_with_two_columns_of_one_name_is_refused():
    table = pd.DataFrame([[0.1, 0.2, 1.0]], columns=["x", "x", "value"])
    with pytest.raises(ValueError, match="two columns 'x'"):
        Optimizer(LINE).tell(table)


def test_executed_inputs_beside_a_table_are_refused():
    table = pd.DataFrame({"x": [0.1], "value": [1.0]})
    with pytest.raises(ValueError, match="columns executed_<name>"):
        Optimizer(LINE).tell(table, executed={"x": 0.2})


# -- refusals


BAD_REPORTS = [
    ((GOOD, math.inf), "must be finite"),
    ((GOOD, -math.inf), "must be finite"),
    ((GOOD, 1e300), "must not exceed"),
    ((GOOD, 10**400), "must be finite"),
    ((GOOD | {"speed": 10**400}, 1.0), "'speed': value must be finite"),
    ((GOOD, "3"), "must be a number"),
    ((GOOD, True), "must be a number"),
    ((GOOD, np.True_), "must be a number"),
    ((GOOD, [3.0]), "must be a number"),
    ((GOOD, np.array([1.0, 2.0])), "must be a number"),
    ((GOOD, 1j), "must be a number"),
    ((GOOD,), "needs a value"),
    ((GOOD | {"sped": 3.0}, 1.0), "Unknown parameter 'sped'; did you mean 'speed'"),
    (({"speed": 80.0}, 1.0), "'depth' is missing"),
    ((GOOD | {"speed": 20.0}, 1.0), "'speed': value must be between 50 and 200, got 20"),
    ((GOOD | {"passes": 9}, 1.0), "'passes': value must be between 1 and 5, got 9"),
    ((GOOD | {"passes": 1.5}, 1.0), "'passes': value must be an integer"),
    ((GOOD | {"tool": "D"}, 1.0), "'tool': expected one of"),
    ((GOOD | {"speed": "80"}, 1.0), "'speed': value must be a number"),
    ((GOOD | {"speed": True}, 1.0), "'speed': value must be a number"),
    ((GOOD | {"speed": None}, 1.0), "'speed': value must be a number"),
    ((GOOD | {"speed": math.nan}, 1.0), "'speed': value must be finite"),
    ((GOOD | {"speed": [80.0]}, 1.0), "'speed': value must be a number"),
    ((None, 1.0), "A design is a dict"),
    (("speed", 1.0), "A design is a dict"),
    (([GOOD], 1.0), "A design is a dict"),
    ((GOOD, 1.0, {"sped": 1.0}), "executed: unknown parameter 'sped'; did you mean 'speed'"),
    ((GOOD, 1.0, {"speed": "fast"}), "executed: Parameter 'speed'"),
    ((GOOD, 1.0, {"speed": math.nan}), "executed: Parameter 'speed'"),
    ((GOOD, 1.0, {"passes": "two"}), "executed: Parameter 'passes'"),
    ((GOOD, 1.0, {"tool": "D"}), "executed: Parameter 'tool'"),
    ((GOOD, 1.0, {"depth": 0.0}), "'depth' is logarithmic and must be > 0"),
    ((GOOD, 1.0, [80.0]), "An executed input is a dict"),
    ((GOOD, 1.0, None, {"tool": unc.Normal(1.0)}), "'tool' is categorical"),
    ((GOOD, 1.0, None, {"sped": unc.Normal(1.0)}), "unknown parameter 'sped'"),
    ((GOOD, 1.0, None, {"speed": 2.0}), "must be an airbo.uncertainty"),
    ((GOOD, 1.0, None, 2.0), "must be an airbo.uncertainty"),
    ((GOOD | {"depth": -1.0}, 1.0, None, None, True), "'depth' is logarithmic"),
    ((GOOD | {"tool": "D"}, 1.0, None, None, True), "'tool': expected one of"),
    ((GOOD | {"speed": math.inf}, 1.0, None, None, True), "'speed': value must be finite"),
]


@pytest.mark.parametrize(("report", "message"), BAD_REPORTS)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_report_that_makes_no_sense_is_refused_and_changes_nothing(report, message):
    optimizer = mill()
    optimizer.ask()
    optimizer.tell(GOOD, 1.0)
    before = optimizer.to_json()
    with pytest.raises((ValueError, TypeError), match=message):
        optimizer.tell(*report)
    assert optimizer.to_json() == before


def test_designs_out_of_the_space_are_accepted_where_that_is_said():
    optimizer = cheap()
    run(optimizer, 3)
    optimizer.tell({"x": 1.5}, 100.0, allow_outside=True)
    assert optimizer.observations["x"].iloc[-1] == 1.5
    assert 0 <= optimizer.ask()["x"] <= 1
    assert 0 <= recommend(optimizer).design["x"] <= 1
    assert Optimizer.from_json(optimizer.to_json()).to_json() == optimizer.to_json()


def test_whole_numbers_out_of_the_space_stay_whole():
    optimizer = Optimizer({"n": Integer(1, 5)})
    optimizer.tell({"n": 9}, 1.0, allow_outside=True)
    assert optimizer.observations["n"].tolist() == [9]


# -- executed inputs and other uncertainties


def test_measured_executed_inputs_stand_in_the_table_of_observations():
    optimizer = mill()
    optimizer.tell(GOOD, 1.0, executed={"speed": 83.0})
    optimizer.tell(GOOD, 2.0)
    table = optimizer.observations
    assert [*table] == [*MILL, "value", "status", "executed_speed"]
    assert table["executed_speed"].tolist() == pytest.approx([83.0, math.nan], nan_ok=True)


def test_an_experiment_with_a_measured_input_is_an_exact_experiment_there():
    measured = cheap(LINE, unc.Normal(0.1), surrogate="mmd")
    exact = cheap(LINE, unc.Normal(0.1), surrogate="mmd")
    for x in (0.1, 0.4, 0.7, 0.95):
        measured.tell({"x": 0.5}, x, executed={"x": x})
        exact.tell({"x": x}, x, uncertainty=unc.Exact())
    X = torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1)
    torch.testing.assert_close(measured.model.posterior(X).mean, exact.model.posterior(X).mean)


def test_what_is_measured_in_part_stays_uncertain_in_the_rest():
    P = {"x": unc.Normal(0.1), "y": unc.Normal(0.2)}
    partly = cheap(SQUARE, P, surrogate="erbf")
    other = cheap(SQUARE, P, surrogate="erbf")
    for x, y in [(0.1, 0.3), (0.5, 0.6), (0.8, 0.2)]:
        partly.tell({"x": 0.5, "y": y}, x + y, executed={"x": x})
        other.tell({"x": x, "y": y}, x + y, uncertainty={"y": unc.Normal(0.2)})
    X = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(partly.model.posterior(X).mean, other.model.posterior(X).mean)


@pytest.mark.parametrize(
    "P", [unc.Normal(0.1), {"x": unc.Normal(0.1), "y": unc.Beta(2.0, 2.0)}], ids=["one", "each"]
)
def test_parameters_that_are_hit_independently_can_be_measured_alone(P):
    optimizer = cheap(SQUARE, P)
    optimizer.tell({"x": 0.5, "y": 0.5}, 1.0, executed={"x": 0.55})
    optimizer.tell({"x": 0.5, "y": 0.5}, 2.0, executed={"x": 0.55, "y": 0.6})
    modelled = optimizer.model.train_inputs[0][:, :2].tolist()
    assert modelled == [pytest.approx([0.55, 0.5]), pytest.approx([0.55, 0.6])]


def test_a_category_that_was_executed_in_place_of_the_one_asked_for_is_modelled():
    swapped, asked = (cheap({"x": (0, 1), "t": ["A", "B"]}) for _ in range(2))
    for x, tool in [(0.1, "A"), (0.5, "B"), (0.9, "A")]:
        swapped.tell({"x": x, "t": "A"}, x, executed={"t": tool})
        asked.tell({"x": x, "t": tool}, x)
    torch.testing.assert_close(swapped.model.train_inputs[0], asked.model.train_inputs[0])


def test_whole_numbers_may_be_executed_with_a_fraction():
    optimizer = cheap({"n": Integer(1, 5)}, unc.Normal(0.3))
    optimizer.tell({"n": 2}, 1.0, executed={"n": 2.25})
    assert optimizer.model.train_inputs[0][0, 0].item() == pytest.approx(0.3125)


def test_an_experiment_made_elsewhere_keeps_its_own_uncertainty():
    same, other = (cheap(LINE, unc.Normal(0.05), surrogate="erbf") for _ in range(2))
    for optimizer, P in [(same, None), (other, {"x": unc.Normal(0.3)})]:
        for x, value in [(0.1, 0.0), (0.5, 1.0), (0.9, 0.2)]:
            optimizer.tell({"x": x}, value, uncertainty=P if x == 0.5 else None)
    X = torch.tensor([[0.5]], dtype=torch.float64)
    difference = same.model.posterior(X).mean - other.model.posterior(X).mean
    assert difference.abs().item() > 1e-3
    assert Optimizer.from_json(other.to_json()).to_json() == other.to_json()


# -- lists


def test_a_batch_is_told_as_it_was_asked_for():
    optimizer = cheap(LINE)
    designs = optimizer.ask(3)
    optimizer.tell(designs, [1.0, None, 3.0], executed=[None, None, {"x": 0.5}])
    assert optimizer.pending == []
    assert optimizer.observations["status"].tolist() == ["ok", "failed", "ok"]
    assert optimizer.observations["executed_x"].tolist()[2] == 0.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "as many values as designs, 3"),
        (1.0, "as many values as designs, 3, got 1.0"),
        ([1.0, "high", 2.0], "Design 1 of the list: The value must be a number"),
    ],
)
def test_a_batch_with_a_mistake_changes_nothing(values, message):
    optimizer = cheap(LINE)
    designs = optimizer.ask(3)
    with pytest.raises((ValueError, TypeError), match=message):
        optimizer.tell(designs, values)
    assert optimizer.pending == designs
    assert optimizer.observations.empty
