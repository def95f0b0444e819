import json

import pytest
import scipy.stats

from airbo import uncertainty as unc


def test_a_description_is_short_and_readable():
    product = unc.Product([unc.Normal(0.1), unc.Ring(2)], [(1,), (0, 2)])
    assert json.loads(product.to_json()) == {
        "kind": "Product",
        "blocks": [{"kind": "Normal", "std": 0.1}, {"kind": "Ring", "radius": 2.0}],
        "columns": [[1], [0, 2]],
    }
    assert unc.SciPy(scipy.stats.gamma(2, scale=0.1)).to_dict() == {
        "kind": "SciPy", "name": "gamma", "args": [2], "kwds": {"scale": 0.1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (3, "described by a 'kind' and its fields, got 3"),
        ({"std": 1}, "described by a 'kind' and its fields"),
        ({"kind": "Cauchy"}, "kind must be one of Exact, Normal.*got 'Cauchy'"),
        ({"kind": ["Normal"]}, "kind must be one of"),
        ({"kind": "Varying", "fn": "os.system"}, "kind must be one of"),
        ({"kind": "Normal", "sd": 1}, r"Normal has no 'sd', only \['std', 'cov'\]"),
        ({"kind": "Beta", "a": 1}, "b is missing for kind 'beta'"),
        ({"kind": "Normal", "std": -1}, "std must be >= 0"),
        ({"kind": "Product", "blocks": [{"kind": "No"}]}, "kind must be one of"),
        ({"kind": "SciPy", "name": "norm_gen"}, "no univariate distribution named 'norm_gen'"),
        ({"kind": "SciPy", "name": "ttest_ind"}, "no univariate distribution named 'ttest_ind'"),
        ({"kind": "SciPy", "name": "__class__"}, "no univariate distribution"),
    ],
)
def test_bad_descriptions_are_refused(description, message):
    with pytest.raises(ValueError, match=message):
        unc.from_json(json.dumps(description))


def test_text_that_is_no_json_is_refused():
    with pytest.raises(ValueError, match="not valid JSON"):
        unc.from_json("{kind: Normal}")


def test_scipy_parameters_must_be_numbers():
    with pytest.raises(TypeError, match=r"args\[0\] must be a number"):
        unc.from_dict({"kind": "SciPy", "name": "norm", "args": ["zero"]})


@pytest.mark.parametrize(
    "custom",
    [
        unc.SciPy(scipy.stats.rv_discrete(values=([0, 1], [0.5, 0.5]))()),
        unc.Product([unc.Exact(), unc.Sampler(lambda X, base: X)]),
        unc.Sampler(lambda X, base: X).clipped(0, 1),
    ],
)
def test_custom_distributions_and_functions_cannot_be_saved(custom):
    with pytest.raises(TypeError, match="cannot be saved"):
        custom.to_json()


def test_custom_distributions_are_equal_only_to_themselves():
    one, other = (
        unc.SciPy(scipy.stats.rv_discrete(values=([0, 1], [p, 1 - p]))()) for p in (0.5, 0.3)
    )
    assert one == one
    assert one != other
