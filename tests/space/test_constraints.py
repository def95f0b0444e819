"""Constraints between parameters: what is read, what is refused, and which designs meet them."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import Categorical, Float, Integer, Space
from airbo.space.constraints import read_constraints
from tests.strategies import quietly

PARAMETERS = {
    "a": Float(0, 1),
    "b": Float(0, 2),
    "n": Integer(0, 10),
    "2-propanol": Float(0, 1),
    "flow rate": Float(0, 5),
    "tool": Categorical(["A", "B"]),
}
MIXTURE = Space(
    {"water": (0.0, 1.0), "ethanol": (0.0, 0.5), "oil": (0.1, 1.0)},
    constraints=["water + ethanol + oil == 1", "ethanol <= 2 * water"],
)


def read(text):
    """Weights by name without zeros, bound, and whether it is an equality, of each part."""
    return [
        (
            {n: w for n, w in zip(PARAMETERS, c.weights, strict=True) if w},
            pytest.approx(c.bound),
            c.is_equality,
        )
        for c in read_constraints([text], PARAMETERS)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b <= 1", [({"a": 1, "b": 1}, 1, False)]),
        ("2*a - b >= 0.5", [({"a": -2, "b": 1}, -0.5, False)]),
        ("a <= b", [({"a": 1, "b": -1}, 0, False)]),
        ("a + b + n == 1", [({"a": 1, "b": 1, "n": 1}, 1, True)]),
        ("a = 0.5 b", [({"a": 1, "b": -0.5}, 0, True)]),
        ("a ≤ 1 - 2(b - .25)", [({"a": 1, "b": 2}, 1.5, False)]),
        (
            "0.2 <= a + b/4 <= 0.8",
            [({"a": -1, "b": -0.25}, -0.2, False), ({"a": 1, "b": 0.25}, 0.8, False)],
        ),
        ("2 2-propanol + flow rate <= 1e0", [({"2-propanol": 2, "flow rate": 1}, 1, False)]),
        ("'flow rate' >= -a * -1", [({"flow rate": -1, "a": 1}, 0, False)]),
    ],
)
def test_a_constraint_is_read_as_it_is_written(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a + c <= 1", r"Constraint 'a \+ c <= 1': unknown parameter 'c'; "),
        ("flow rat <= 1", "unknown parameter 'flow'; did you mean 'flow rate'"),
        ("a < b", "write <= instead of <"),
        ("a * b <= 1", "multiplies 'a' and 'b'; a constraint must be linear"),
        ("a / b <= 1", "divides by 'b', which is not linear"),
        ("a / 0 <= 1", "divides by 0"),
        ("tool <= 1", "'tool' is categorical"),
        ("tool == 'A'", "'tool' is categorical; only numbers can be constrained"),
        ("a + b", "expected <=, >= or =="),
        ("a <= ", r"cannot be read \(invalid syntax\)"),
        ("", "cannot be read"),
        ("a ** 2 <= 1", "more than sums and products"),
        ("(a + b <= 1", "never closed"),
        ("a + b) <= 1", r"unmatched '\)'"),
        ("'flow rate <= 1", 'did not expect "\'" there'),
        ("a <= b >= n", "expected one comparison, or a range"),
        ("a - a <= 1", "does not depend on any parameter"),
        ("a != 1", "did not expect '!'"),
        ("__import__('os') <= 1", "unknown parameter '__import__'"),
        ("1e999 * a <= 1", "too large"),
        ("-" * 99999 + "a <= 1", "too many brackets or signs"),
        ("(" * 5000, "too many nested parentheses"),
        (
            "a + b >= 4",
            "no design can meet it: a is between 0 and 1, b is between 0 and 2; the nearest misses "
            "it by 1",
        ),
        ("3 n == 7", "no design between the bounds can meet it"),
        (3, "A constraint is a text"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_is_no_linear_constraint_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Space(PARAMETERS, constraints=[text])


@pytest.mark.parametrize("given_", ["a <= 1", {"a": 1}, 3])
@pytest.mark.usefixtures("as_without_shape_checks")
def test_constraints_are_a_list(given_):
    with pytest.raises(ValueError, match=r"constraints is a list of texts"):
        Space(PARAMETERS, constraints=given_)


def test_constraints_that_contradict_each_other_are_named_without_the_others():
    with pytest.raises(ValueError, match=r"together: \['a \+ b >= 2', 'a \+ b <= 1'\]"):
        Space(PARAMETERS, constraints=["n <= 4", "a + b >= 2", "a + b <= 1"])


def test_designs_that_miss_a_constraint_are_treated_as_designs_outside_the_bounds():
    design = {"water": 0.1, "ethanol": 0.4, "oil": 0.5}
    with pytest.raises(ValueError, match=r"misses the constraint 'ethanol <= 2 \* water' by 0.2"):
        MIXTURE.check(design)
    assert MIXTURE.checked(design, allow_outside=True) == design
    assert not MIXTURE.meets(design)
    MIXTURE.check({"water": 1 / 3, "ethanol": 0.333333, "oil": 0.333334})  # as it is printed


def test_a_space_survives_json_with_its_constraints():
    assert Space.from_dict(MIXTURE.to_dict()) == MIXTURE
    assert Space.from_dict(MIXTURE.to_dict()).constraints == MIXTURE.constraints
    assert Space(MIXTURE.parameters) != MIXTURE
    assert "constraints" not in Space(MIXTURE.parameters).to_dict()
    assert "ethanol <= 2 * water" in repr(MIXTURE)


def test_one_constraint_is_checked_without_importing_numpy():
    code = (
        "import sys, airbo;"
        "s = airbo.Space({'x': (0, 1), 'y': (0, 1)}, constraints=['x + y <= 1']);"
        "s.check({'x': 0.5, 'y': 0.5});"
        "print([m for m in ('torch', 'numpy', 'scipy') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# -- the polytope

kinds = st.sampled_from(
    [
        Float(0, 1),
        Float(-3, 2),
        Float(0.01, 10, log=True),
        Integer(0, 12),
        Integer(1, 64, log=True),
        Float(0, 1, step=0.05),
    ]
)


@st.composite
def constrained_spaces(draw):
    """Spaces with one to three constraints that at least one drawn design meets."""
    parameters = {f"p{i}": p for i, p in enumerate(draw(st.lists(kinds, min_size=2, max_size=4)))}
    whole = st.integers(-3, 3)
    at = {name: _value(p, draw(st.integers(0, 12))) for name, p in parameters.items()}
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        weights = {name: draw(whole) for name in parameters}
        if not any(weights.values()):
            continue
        left = sum(w * at[name] for name, w in weights.items())
        shown = " + ".join(f"{w} * {name}" for name, w in weights.items())
        is_equality = draw(st.integers(0, 3)) == 0 and not any("==" in t for t in texts)
        slack = 0.0 if is_equality else draw(st.sampled_from([0.0, 0.1, 2.0]))
        texts.append(f"{shown} {'==' if is_equality else '<='} {left + slack!r}")
    return quietly(Space)(parameters, texts)


def _value(parameter, k):
    low, high = parameter.range
    n = 12 if parameter.n_values is None else parameter.n_values - 1
    return parameter.decode(low + (high - low) * min(k, n) / n)


@given(space=constrained_spaces(), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_the_nearest_design_meets_all_constraints_and_is_no_farther_than_others(space, seed):
    random = np.random.default_rng(seed)
    low, high = map(np.array, space.bounds)
    x = low + random.random(space.d) * (high - low)
    near, polytope = space.polytope.nearest(x), space.polytope
    assert polytope.holds(near[None]).all()
    assert np.array_equal(polytope.nearest(near), near)
    others = polytope.spread(8, random)
    assert polytope.holds(others).all()

    def distance(y):
        return (np.abs(y - x) / (high - low)).sum(-1)

    assert (distance(near) <= distance(others) + 1e-6).all()


def test_drawn_points_are_uniform_in_a_simplex():
    # Dirichlet(1, ..., 1) over 6 parts: mean 1/6, variance 5/252, mean of the largest part 0.408
    space = Space(
        {f"x{i}": (0.0, 1.0) for i in range(6)},
        constraints=[" + ".join(f"x{i}" for i in range(6)) + " == 1"],
    )
    X = space.polytope.spread(1000, np.random.default_rng(0))
    largest = sum(1 / k for k in range(1, 7)) / 6
    assert np.abs(X.mean(0) - 1 / 6).max() < 5 * np.sqrt(5 / 252 / 1000)
    assert np.abs(X.var(0) - 5 / 252).max() < 0.003
    assert X.max(1).mean() == pytest.approx(largest, abs=5 * 0.11 / np.sqrt(1000))


def test_thin_polytopes_are_filled_from_end_to_end():
    space = Space(
        {"a": (0.0, 100.0), "b": (0.0, 100.0)}, constraints=["a - b <= 0.01", "b - a <= 0.01"]
    )
    X = space.polytope.spread(400, np.random.default_rng(0))
    share = np.histogram(X[:, 0], bins=4, range=(0, 100))[0] / 400
    assert np.abs(share - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 400)


def test_a_mended_design_keeps_what_it_must():
    design = {"water": 0.2, "ethanol": 0.5, "oil": 0.6}
    mended = MIXTURE.mended(design, keep=["ethanol"])
    assert mended["ethanol"] == 0.5
    assert MIXTURE.meets(mended)
    assert MIXTURE.mended(design, keep=["ethanol", "water"]) is None
