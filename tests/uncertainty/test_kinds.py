"""Descriptions are read and checked without PyTorch, as the classes would."""

import json
import subprocess
import sys

import pytest

from airbo import uncertainty as unc
from airbo.uncertainty.kinds import KINDS, check_width, clipped, described, said, width_of
from tests.uncertainties import SAVEABLE


def show(numbers, unit=True):
    """Write numbers in the same way, be they in lists or in tuples."""
    return json.dumps(numbers)


@pytest.mark.parametrize(("uncertainty", "d"), SAVEABLE, ids=repr)
def test_a_description_says_what_its_object_says(uncertainty, d):
    description = json.loads(uncertainty.to_json())
    assert described(description) == description
    assert width_of(description) in (uncertainty.dim, None)
    if "external" not in {kind.module for kind in KINDS.values() if kind.name in repr(description)}:
        assert said(description, show) == said(uncertainty, show)


@pytest.mark.parametrize(
    "short",
    [
        {"kind": "Normal", "std": 2},
        {"kind": "Normal", "std": [1, 2]},
        {"kind": "Beta", "a": 1, "b": 2},
        {"kind": "ChiSquared", "df": 3},
        {"kind": "GaussianMixture", "means": [[0, 1], [1, 0]], "covs": [[1, 0], [0, 1]]},
        {"kind": "Empirical", "deviations": [1, 2, 3]},
        {"kind": "Relative", "share": {"kind": "Beta", "a": 1, "b": 2}},
        {"kind": "LogNormal", "sigma": [1, 2]},
        {"kind": "SciPy", "name": "norm"},
        {"kind": "Piecewise", "edges": [1],
         "pieces": [{"kind": "Exact"}, {"kind": "Normal", "std": 1}]},
        {"kind": "Piecewise", "edges": [], "pieces": [{"kind": "Exact"}]},
        {"kind": "Clipped", "uncertainty": {"kind": "Normal", "std": 1}, "low": 0},
    ],
)  # fmt: skip
def test_what_is_left_out_is_filled_in_as_the_class_does(short):
    assert described(short) == json.loads(unc.from_dict(short).to_json())


@pytest.mark.parametrize(
    "wrong",
    [
        3,
        {"kind": "Cauchy"},
        {"kind": "Normal"},
        {"kind": "Normal", "std": -1},
        {"kind": "Normal", "std": "large"},
        {"kind": "Normal", "std": float("nan")},
        {"kind": "Normal", "std": []},
        {"kind": "Normal", "std": [[1]]},
        {"kind": "Normal", "std": 1, "cov": [[1]]},
        {"kind": "Normal", "cov": [[1, 2]]},
        {"kind": "Normal", "cov": [[1, 2], [3]]},
        {"kind": "Normal", "sd": 1},
        {"kind": "Uniform", "low": 1, "high": 0},
        {"kind": "Uniform", "low": [0, 1], "high": [1, 0.5]},
        {"kind": "Uniform", "low": [0, 1], "high": [1, 2, 3]},
        {"kind": "Beta", "a": 0, "b": 1},
        {"kind": "Beta", "a": 1},
        {"kind": "ChiSquared", "df": 1, "scale": -1},
        {"kind": "GaussianMixture", "means": [0, 1], "covs": [[1]]},
        {"kind": "Ring", "radius": [1, 2]},
        {"kind": "Empirical", "deviations": 3},
        {"kind": "Relative", "share": {"kind": "Normal", "std": -1}},
        {"kind": "Relative"},
        {"kind": "LogNormal", "sigma": -0.1},
        {"kind": "LogNormal", "sigma": [[0.1]]},
        {"kind": "Piecewise", "edges": [2, 1], "pieces": [{"kind": "Exact"}] * 3},
        {"kind": "Piecewise", "edges": [1], "pieces": [{"kind": "Exact"}]},
        {"kind": "Piecewise", "edges": [1], "pieces": [{"kind": "Exact"}] * 2, "column": -1},
        {"kind": "Clipped", "uncertainty": {"kind": "Exact"}, "low": 1, "high": 0},
    ],
)
def test_what_the_class_refuses_is_refused_with_the_same_words(wrong):
    with pytest.raises((ValueError, TypeError)) as of_class:
        unc.from_dict(wrong)
    with pytest.raises((ValueError, TypeError)) as of_kind:
        described(wrong)
    assert str(of_class.value) == str(of_kind.value)


def test_descriptions_know_how_many_columns_they_act_on():
    check_width({"kind": "Ring", "radius": 1.0}, 2)
    check_width({"kind": "Normal", "std": 1.0}, 7)
    with pytest.raises(ValueError, match="Clipped acts on designs with 2 columns, got 1"):
        check_width(clipped({"kind": "Ring", "radius": 1.0}, 0, None), 1)


def test_every_class_that_can_be_saved_has_a_kind():
    assert {type(u).__name__ for u, _ in SAVEABLE} == set(KINDS)


def test_reading_descriptions_needs_no_pytorch():
    code = (
        "import sys; from airbo.uncertainty import from_dict, kinds; import airbo.uncertainty;"
        "kinds.described({'kind': 'Normal', 'std': 1});"
        "assert not {'torch', 'numpy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
