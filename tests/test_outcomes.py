"""Outcomes as values: what can be said of them, and what is refused."""

import json
import math
from types import SimpleNamespace

import pytest

from airbo import AtLeast, AtMost, Between, Maximize, Minimize, measures
from airbo.outcomes import (
    check_outcomes,
    check_values,
    expected_words,
    limits,
    objectives,
    outcomes_from_dict,
    outcomes_to_dict,
)

ALL = {
    "strength": Maximize(measures.CVaR(0.8)),
    "weight": Minimize(),
    "leak": AtMost(0.2),
    "life": AtLeast(1000, probability=0.9),
    "gap": Between(0.1, 0.3, probability=0.5),
}


def test_outcomes_survive_json():
    text = json.dumps(outcomes_to_dict(ALL))
    assert outcomes_from_dict(json.loads(text)) == ALL


def test_objectives_and_limits_are_told_apart():
    assert [*objectives(ALL)] == ["strength", "weight"]
    assert {name: limit.bounds for name, limit in limits(ALL).items()} == {
        "leak": (None, 0.2),
        "life": (1000.0, None),
        "gap": (0.1, 0.3),
    }


def test_every_outcome_says_what_is_wanted():
    assert [outcome.words(name) for name, outcome in ALL.items()] == [
        "strength as large as possible (mean over the worst 20 of 100 executed inputs)",
        "weight as small as possible",
        "leak at most 0.2 for 95% of executed inputs",
        "life at least 1000 for 90% of executed inputs",
        "gap between 0.1 and 0.3 for 50% of executed inputs",
    ]
    assert AtMost(0.2).words("leak", "ml") == "leak at most 0.2 ml for 95% of executed inputs"
    near = Maximize(measures.Target(50))
    assert near.words("width", "mm") == "width as near as possible to 50 mm"


@pytest.mark.parametrize(
    ("want", "better", "from_best_to_worst"),
    [
        (Maximize(), "larger is better", [3, 2, -1]),
        (Minimize(measures.CVaR(0.9)), "smaller is better", [-1, 2, 3]),
        (Maximize(measures.Target(1.5)), "nearer to 1.5 is better", [1.5, 2, 0.9, 3]),
        (
            Maximize(measures.InSpec(1.4, 1.6)),
            "between 1.4 and 1.6 is in spec",
            [1.5, 1.55, 1.41, 1.6, 1.61, 1.3, 2.62],
        ),
        (Minimize(measures.InSpec(low=2.0)), "at least 2 is in spec", [5, 3, 2, 1]),
        (AtMost(0.2), "must be at most 0.2", [0.0, 0.1, 0.2, 0.3]),
        (Between(0.1, 0.3), "must be between 0.1 and 0.3", [0.2, 0.25, 0.3, 0.35, 0.0]),
    ],
    ids=str,
)
def test_every_goal_knows_which_values_are_good(want, better, from_best_to_worst):
    assert want.better() == better
    assert sorted(from_best_to_worst, key=want.merit, reverse=True) == from_best_to_worst


@pytest.mark.parametrize("want", ALL.values(), ids=str)
def test_values_within_limits_have_no_negative_merit(want):
    low, high = want.bounds
    for value in (0.05, 0.15, 0.25, 500.0, 2000.0):
        if low is not None or high is not None:
            is_within = (low is None or value >= low) and (high is None or value <= high)
            assert (want.merit(value) >= 0) == is_within


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AtMost(math.nan), "AtMost: limit must be finite"),
        (lambda: AtMost("0.2"), "AtMost: limit must be a number, got '0.2'"),
        (
            lambda: AtLeast(1, probability=1.0),
            r"AtLeast: probability must .* between 0 and 1.* got 1\.0\.$",
        ),
        (
            lambda: AtMost(1, probability=0.9999),
            r"AtMost: probability must not exceed 0\.999 .* Ask for 0\.999 of a stricter limit\.$",
        ),
        (lambda: AtLeast(1, probability=95), r"between 0 and 1, as 0\.9 for 90%, got 95\.$"),
        (lambda: Between(0.3, 0.1), "low must be below high, got 0.3, 0.1"),
        (lambda: Maximize(measures.Mean), "make one"),
        (lambda: Minimize("mean"), "measure must be one of airbo.measures"),
        (lambda: check_outcomes({}), "outcomes must be a dict"),
        (lambda: check_outcomes({"a": AtMost}), "write it with brackets"),
        (lambda: check_outcomes({"a": 0.2}), "Outcome 'a': expected one of Maximize"),
        (lambda: check_outcomes({"a": AtMost(1)}), "one to 3 objectives .* got 0"),
        (lambda: check_outcomes({n: Maximize() for n in "abcd"}), "one to 3 objectives .* got 4"),
        (lambda: check_outcomes({"": Maximize()}), "non-empty strings"),
        (lambda: check_outcomes({"feasible": Maximize()}), "cannot be called 'feasible'"),
        (lambda: outcomes_from_dict({"a": {"kind": "Most"}}), "kind must be one of"),
        (lambda: outcomes_from_dict({"a": {"kind": "AtMost"}}), "Outcome 'a': .*limit"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_what_was_not_measured_may_be_left_out_or_empty():
    told = {"gap": 0.2, "leak": None, "strength": math.nan, "weight": 3}
    assert check_values(ALL, told) == {"weight": 3.0, "gap": 0.2}


@pytest.mark.parametrize("failed", [None, math.nan])
def test_an_experiment_without_outcomes_has_failed(failed):
    assert check_values(ALL, failed) is None


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"leek": 0.1}, r"Unknown outcome 'leek'; did you mean 'leak'\?$"),
        ({"q": 0.1}, "Unknown outcome 'q'; there are"),
        ({}, "No outcome was measured: expected at least one of strength, weight"),
        ({"leak": None}, "No outcome was measured"),
        ({"leak": "low"}, "Outcome 'leak': The value must be a number"),
        ({"leak": math.inf}, "Outcome 'leak': The value must be finite"),
        (0.1, "Expected a dict of outcomes"),
    ],
)
def test_what_cannot_have_been_measured_is_refused(told, message):
    with pytest.raises((ValueError, TypeError), match=message):
        check_values(ALL, told)


@pytest.mark.parametrize(
    ("want", "mean", "said"),
    [
        (Maximize(), 0.904, "0.90 ± 0.21 mm"),
        (Maximize(measures.CVaR(0.9)), 0.904, "0.90 ± 0.21 mm"),
        (Maximize(measures.InSpec(1, 3)), 0.904, "90.4% (55.9% to 100%) in spec"),
        (Minimize(measures.Target(2)), -0.09, "typically 0.3 mm away from 2"),
        (None, 0.904, "0.90 ± 0.21 mm"),
    ],
)
def test_only_values_have_the_unit_of_values(want, mean, said):
    share = SimpleNamespace(share=0.904, share_interval=(0.559, 1.0))
    estimate = SimpleNamespace(mean=mean, std=0.21, capability=share)
    assert expected_words(want, estimate, "mm") == said
