import pytest
import torch

from airbo import Float, Integer, Optimizer, Space
from airbo import uncertainty as unc
from airbo.space.cube import Cube
from airbo.uncertainty.in_cube import (
    by_columns,
    check_logs,
)

MIXED = Space(
    {"x": (10.0, 30.0), "t": ["A", "B", "C"], "d": Float(0.01, 1.0, log=True), "n": Integer(1, 5)}
)
SQUARE = Space({"x": (0, 1), "y": (0, 1)})
X = Cube(MIXED).columns(
    [{"x": 15, "t": "B", "d": 0.1, "n": 3}, {"x": 30, "t": "A", "d": 1.0, "n": 1}]
)
JOINT = unc.Normal(cov=[[0.02, 0.01], [0.01, 0.02]])


def base(uncertainty, n=64):
    return unc.base_draws(n, uncertainty.n_base(4))


# -- names


def test_parameters_that_are_not_named_are_hit_exactly():
    P = by_columns(MIXED, {"n": unc.Normal(0.5)})
    samples = P.perturb(X, base(P))
    assert (samples[..., :3] == X[:, None, :3]).all()
    assert samples[..., 3].std() > 0


FLOATS = Space({**MIXED.parameters, "n": (1.0, 5.0)})


def test_groups_and_names_in_any_order_reach_their_columns():
    P = by_columns(FLOATS, {("n", "x"): JOINT, "d": unc.Uniform(0.0, 0.5)})
    covariance = P.covariance(X)[0]
    assert covariance[0, 3].item() == pytest.approx(0.01)
    assert covariance[2, 2].item() == pytest.approx(0.25 / 12, rel=1e-3)
    assert covariance[1].abs().sum() == 0


@pytest.mark.parametrize("given", [None, {}, unc.Exact()], ids=repr)
def test_nothing_given_means_exact(given):
    assert by_columns(MIXED, given) == unc.Exact()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"t": unc.Normal(0.1)}, "'t' is categorical: uncertainty on categories is not supported"),
        ({("x", "t"): unc.Normal(0.1)}, "'t' is categorical"),
        (unc.Normal(0.1), "'t' is categorical"),
        ({"z": unc.Normal(0.1)}, "unknown parameter 'z'"),
        ({"x": unc.Normal(0.1), ("x", "n"): JOINT}, "more than one uncertainty"),
        ({("x", "x"): JOINT}, "more than one uncertainty"),
        ({"x": JOINT}, "uncertainty of 'x' does not fit"),
        ({"x": 0.1}, "must be an airbo.uncertainty"),
        ("x", "must be an airbo.uncertainty"),
        ({"d": unc.Normal(0.1)}, r"'d' is logarithmic .* \.clipped\(low"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_an_uncertainty_that_does_not_fit_the_space_is_refused(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        by_columns(MIXED, given)


def test_a_logarithmic_parameter_may_be_uncertain_as_long_as_it_stays_positive():
    for P in (unc.Normal(1e-3), unc.Normal(0.1).clipped(low=1e-3), unc.Uniform(-0.009, 0.1)):
        by_columns(MIXED, {"d": P})
    varying = unc.Varying(lambda x: unc.Normal(0.1 * x))
    by_columns(Space({"d": Float(0.01, 1.0, log=True)}), varying)
    with pytest.raises(ValueError, match="'d' is logarithmic"):
        check_logs(MIXED, by_columns(MIXED, {"d": unc.Normal(1e-3)}), X - torch.tensor(0.0999))


def test_columns_that_are_uncertain_are_found_inside_products():
    assert by_columns(MIXED, {("n", "x"): JOINT}).uncertain_columns(4) == [0, 3]


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda X, base: X, r"samples of shape \(3, 4, 1\)"),
        (lambda X, base: X.unsqueeze(-2) + base * torch.nan, "nan or infinite"),
    ],
)
def test_a_broken_sampler_is_refused_before_any_experiment(fn, message):
    with pytest.raises(ValueError, match=message):
        Optimizer({"x": (0.0, 1.0)}, unc.Sampler(fn))


def test_a_function_that_looks_at_the_first_design_only_is_refused():
    first_only = unc.Varying(lambda x: unc.Normal(0.1 + float(x[0, 0])))
    with pytest.raises(ValueError, match=r"take x\[..., 0\], not x\[0\]"):
        Optimizer({"x": (0.0, 1.0)}, first_only)


def test_one_uncertainty_for_a_group_hits_its_parameters_independently_and_alike():
    P = by_columns(SQUARE, {("x", "y"): unc.Beta(0.4, 0.2, scale=0.1)})
    each = by_columns(SQUARE, dict.fromkeys("xy", unc.Beta(0.4, 0.2, scale=0.1)))
    X, base = torch.rand(3, 2).double(), unc.base_draws(64, 2)
    assert torch.equal(P.perturb(X, base), each.perturb(X, base))
