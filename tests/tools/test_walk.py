import pytest

from airbo import Space
from tests.tools.walk import readme, walk

SPACE = Space({"x": (0.0, 1.0), "tool": ["A", "B"]})


def test_a_walk_counts_the_calls_of_our_own_functions_by_file():
    found = walk(lambda: [SPACE.checked({"x": 0.5, "tool": "A"}) for _ in range(3)])
    assert found.calls["space/space.py", "Space.checked"] == 3
    assert found.packages == ["space"]


def test_a_walk_that_fails_leaves_nothing_behind():
    with pytest.raises(ValueError, match="'x' is missing"):
        walk(lambda: SPACE.check({}))
    assert walk(lambda: None).calls == {}


def test_a_design_is_translated_once_on_its_way_in_and_once_on_its_way_out():
    calls = walk(readme()).calls
    assert calls["space/cube.py", "Cube.from_columns"] == 1  # the design that was told
    assert calls["space/cube.py", "Cube.to_columns"] == 1  # the design that is asked for
