"""Whole numbers that are missed land on whole numbers, within their range."""

import pytest
import torch

import airbo
from airbo import uncertainty as unc
from airbo.uncertainty.in_cube import by_columns, in_cube
from tests.uncertainties import double

ONE_COLUMN = [
    unc.Normal(1.3),
    unc.Uniform(-1.2, 2.0),
    unc.Beta(2.0, 3.0, loc=-1.0, scale=3.0),
    unc.ChiSquared(3.0, scale=0.5),
    unc.Empirical([-1.0, 0.0, 0.5, 2.0]),
    unc.Relative(unc.Normal(0.3)),
    unc.Relative(unc.Uniform(-0.5, 0.2)),
    unc.LogNormal(0.4),
    unc.GaussianMixture([[-1.0], [1.0]], [[[0.2]], [[0.3]]], [0.3, 0.7]),
    unc.Normal(1.0).clipped(low=0.6, high=4.2),
    unc.Piecewise([2.0], [unc.Normal(0.1), unc.Normal(2.0)]),
    unc.Varying(lambda x: unc.Normal(0.2 * x.abs())),
    unc.Scaled(unc.Normal(1.0), 0.7),
    unc.Exact(),
]
N = 2**15
TOLERANCE = 1e-3
"""Sobol draws: errors fall nearly as 1/N; a fallback that counts 4096 draws has 2/4096."""
X = double([[1.0], [3.0], [5.0], [2.4]])


@pytest.mark.parametrize("inside", ONE_COLUMN, ids=lambda u: type(u).__name__)
def test_probabilities_are_the_frequencies_of_samples(inside):
    P = unc.Rounded(inside, 1, 5)
    samples = P.perturb(X, unc.base_draws(N, P.n_base(1))).squeeze(-1)
    assert set(samples.unique().tolist()) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    landings = P.landings(X)
    values, likely = landings.means.squeeze(-1), landings.weights
    assert torch.equal(values, double([1, 2, 3, 4, 5]).expand(4, 5))
    counted = torch.stack([(samples == v).double().mean(dim=-1) for v in range(1, 6)], dim=-1)
    torch.testing.assert_close(likely, counted, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(P.mean(X), samples.mean(-1, keepdim=True), atol=4e-3, rtol=0)


@pytest.mark.parametrize("inside", ONE_COLUMN, ids=lambda u: type(u).__name__)
def test_a_distribution_function_counts_what_lies_below(inside):
    for design in (X, -X, torch.zeros_like(X)):
        samples = inside.perturb(design, unc.base_draws(N, inside.n_base(1)))
        for t in (-2.3, 0.0, 0.7, 3.1):
            counted = (samples < t).double().mean(dim=-2)
            torch.testing.assert_close(
                inside.cdf(design, double([t])), counted, atol=TOLERANCE, rtol=0
            )


def test_a_distribution_function_does_not_count_what_lies_at_the_limit_itself():
    in_percent = unc.Relative(unc.Empirical([0.0, 0.5]))  # -2 lands at -2 and -3
    design, limits = double([[-2.0], [2.0]]), double([-3.0, -2.0, 2.0, 3.0])
    below = [[0.0, 0.5, 1.0, 1.0], [0.0, 0.0, 0.0, 0.5]]
    assert in_percent.cdf(design, limits).tolist() == below


def test_a_design_outside_the_range_lands_around_itself():
    P = unc.Rounded(unc.Normal(1.0), 1, 5)
    base = unc.base_draws(256, 1)
    outside, inside = (P.perturb(double([[x]]), base) for x in (7.0, 5.0))
    torch.testing.assert_close(outside, inside + 2)


SPACE = airbo.Space(
    {
        "x": (0.0, 1.0),
        "n": airbo.Integer(1, 5),
        "m": airbo.Integer(1, 1000, log=True),
        "k": airbo.Integer(-3, 3),
    }
)
GIVEN = {
    "by name": {"n": unc.Normal(1.0), "m": unc.LogNormal(0.3)},
    "for all": unc.Normal(0.4),
    "in groups": {("x", "n"): unc.Normal(cov=[[0.01, 0.05], [0.05, 1.0]]), ("k", "m"): unc.Ring(2)},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_integers_of_a_space_land_on_integers_in_their_range(given):
    P = by_columns(SPACE, given)
    low, high = double(SPACE.bounds)
    designs = torch.stack([low, double([0.5, 3, 40, 0]), high])
    samples = P.perturb(designs, unc.base_draws(512, P.n_base(4)))
    whole = samples[..., list(SPACE.integer_columns)]
    assert torch.equal(whole, whole.round())
    assert (whole >= low[1:]).all()
    assert (whole <= high[1:]).all()
    again = unc.from_json(P.to_json())
    assert by_columns(SPACE, again) == again == P
    cube = in_cube(SPACE, P)
    assert cube.perturb(double([[0.5] * 4]), unc.base_draws(8, cube.n_base(4))).isfinite().all()


def test_a_measured_integer_is_known():
    optimizer = airbo.Optimizer(SPACE, unc.Normal(0.4), seed=0)
    design = {"x": 0.5, "n": 2, "m": 10, "k": 0}
    optimizer.tell(design, 1.0, executed={"n": 3})
    assert len(optimizer.observations) == 1


def test_scaling_changes_what_is_rounded():
    P = unc.Rounded(unc.Normal(2.0), 1, 5)
    assert P.scaled(0.5) == unc.Rounded(unc.Normal(1.0), 1, 5)


def test_limits_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="low must be <= high"):
        unc.Rounded(unc.Normal(1.0), 5, 1)
