"""About ten families describe logs as well as the former 22 did."""

import pytest

from tests.calibrate.likelihood import proposal, rows
from tests.calibrate.logs import LOGS

TABLE = {(row["log"], int(row["seed"])): row for row in rows()}


def test_no_log_loses_much_against_the_former_families():
    assert {name for name, _ in TABLE} == set(LOGS)
    losses = {key: float(row["former"]) - float(row["now"]) for key, row in TABLE.items()}
    assert max(losses.values()) < 0.05  # nats per value


def test_steps_are_kept():
    for (name, _), row in TABLE.items():
        if "steps" in row["former_family"]:
            assert row["family"] == "steps", name


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if i % 3 else ()) for i, name in enumerate(LOGS)],
)
def test_the_table_is_what_learn_gives(name):
    value, family = proposal(name, seed=0)
    assert value == pytest.approx(float(TABLE[name, 0]["now"]), abs=2e-3)
    assert family == TABLE[name, 0]["family"]
