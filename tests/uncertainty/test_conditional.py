"""What a part of the executed input says about the rest of it."""

import pytest
import torch

from airbo import Optimizer
from airbo import uncertainty as unc
from airbo.uncertainty.conditional import CELLS

COV = [[0.4, 0.3, 0.1], [0.3, 0.5, -0.1], [0.1, -0.1, 0.3]]
NORMAL = unc.Normal(cov=COV)
MIXTURE = unc.GaussianMixture(
    [[-1.0, -1.0, 0.0], [1.0, 0.5, 0.5]], [COV, (0.2 * torch.eye(3)).tolist()], [0.3, 0.7]
)
COPULA = [[1.0, 0.7, 0.2], [0.7, 1.0, -0.2], [0.2, -0.2, 1.0]]
DESIGN = [2.0, 3.0, 1.0]
JOINT = {
    "normal": NORMAL,
    "mixture": MIXTURE,
    "relative": unc.Relative(NORMAL),
    "scaled": unc.Scaled(MIXTURE, 0.5),
    "varying": unc.Varying(lambda x: unc.Normal(cov=x[..., :1, None] * torch.tensor(COV).to(x))),
    "copula": unc.Joint([unc.Normal(0.6), unc.Uniform(-1, 1), unc.LogNormal(0.2)], COPULA),
    "piecewise": unc.Piecewise([0.0], [unc.Exact(), NORMAL]),
}
INDEPENDENT = {
    "one number": unc.Normal(0.1),
    "vectors": unc.Uniform([-0.1, -0.2, -0.3], 0.1),
    "percent": unc.Relative(unc.Normal([0.1, 0.2, 0.3])),
    "log": unc.LogNormal(0.1),
    "clipped": unc.Normal([0.1, 0.2, 0.3]).clipped([0.0, 1.0, 2.0]),
}
joint = pytest.mark.parametrize("P", JOINT.values(), ids=JOINT)


def moments(P, design=DESIGN):
    X = torch.tensor([design], dtype=torch.float64)
    return P.mean(X)[0], P.covariance(X)[0]


def rest_of(P, executed, design=DESIGN):
    point, around = unc.conditional(P, design, executed)
    mean, covariance = moments(around, point)
    return mean, covariance


def nearest_samples(P, executed, k=512):
    """Moments of the k of many samples that come closest to what was measured."""
    X = torch.tensor([DESIGN], dtype=torch.float64)
    landed = P.perturb(X, unc.base_draws(2**16, P.n_base(3), seed=1))[0]
    measured = torch.tensor([*executed.values()], dtype=torch.float64)
    distance = (landed[:, [*executed]] - measured).abs().amax(-1)
    some = landed[distance.topk(k, largest=False).indices]
    return some.mean(0), some.mT.cov()


@joint
@pytest.mark.parametrize("executed", [{0: 2.4}, {2: 1.3, 0: 1.8}], ids=str)
def test_closed_forms_equal_what_many_samples_say(P, executed):
    mean, covariance = rest_of(P, executed)
    sampled_mean, sampled_covariance = nearest_samples(P, executed)
    rest = [c for c in range(3) if c not in executed]
    # 512 samples: 5 standard errors of a mean, and of a covariance
    std, error = covariance.diagonal()[rest].sqrt(), 5 / 512**0.5
    assert ((sampled_mean - mean)[rest].abs() <= error * std).all()
    difference = (sampled_covariance - covariance)[rest][:, rest]
    assert (difference.abs() <= 1.5 * error * std.outer(std)).all()
    assert [mean[c].item() for c in executed] == pytest.approx([*executed.values()])
    assert covariance[[*executed]].abs().max() == 0


def as_samples(P, additive):
    """The same distribution, of which nothing is known but its draws."""
    return unc.Sampler(P.perturb, n_base=P.n_base(3), dim=3, additive=additive)


@pytest.mark.parametrize("executed", [{1: 2.6}, {2: 1.3, 0: 1.8}], ids=str)
def test_draws_and_logs_of_a_normal_say_what_its_closed_form_says(executed):
    log = NORMAL.perturb(torch.zeros(1, 3).double(), unc.base_draws(2048, 3))[0]
    mean, covariance = rest_of(NORMAL, executed)
    std = covariance.diagonal().sqrt()
    for P in (as_samples(NORMAL, additive=True), unc.Empirical(log)):
        ours = rest_of(P, executed)
        k = 2 * 2048**0.5  # the mean of so many rows
        assert ((ours[0] - mean).abs() <= 5 / k**0.5 * std + 1e-12).all()
        assert ((ours[1] - covariance).abs() <= 0.25 * std.outer(std)).all()


def test_an_observation_brings_few_gaussians_into_a_model():
    log = NORMAL.perturb(torch.zeros(1, 3).double(), unc.base_draws(2048, 3))[0]
    _, around = unc.conditional(unc.Empirical(log), DESIGN, {0: 1.9})
    assert len(around.blocks[0].weights) <= CELLS.cells


def test_draws_that_change_with_the_design_are_those_near_what_was_measured():
    executed = {2: 1.3, 0: 1.8}
    for P in (as_samples(NORMAL, additive=False), NORMAL.clipped(-9.0, 9.0)):
        mean, covariance = rest_of(P, executed)
        expected, expected_covariance = rest_of(NORMAL, executed)
        std = expected_covariance[1, 1].sqrt()
        assert (mean - expected).abs().max() <= 0.25 * std
        assert (covariance - expected_covariance).abs().max() <= 0.3 * std**2


@pytest.mark.parametrize(
    "P",
    [NORMAL.clipped([0.0, 2.5, 0.9], 9.0), JOINT["copula"].clipped(0.0, [9.0, 3.2, 9.0])],
    ids=["normal", "copula"],
)
@pytest.mark.parametrize("executed", [{0: 1.4}, {0: 2.7, 2: 1.3}], ids=str)
def test_what_is_clipped_keeps_its_limits(P, executed):
    point, around = unc.conditional(P, DESIGN, executed)
    X = torch.tensor([point], dtype=torch.float64)
    landed = around.perturb(X, unc.base_draws(512, around.n_base(3)))[0]
    low, high = (torch.tensor(ends).double() for ends in (P.low, P.high))
    assert ((landed >= low) & (landed <= high)).all()
    expected, _ = nearest_samples(P, executed)
    assert (landed.mean(0) - expected).abs().max() < 0.1


@pytest.mark.parametrize("P", [NORMAL, MIXTURE], ids=["normal", "mixture"])
def test_what_is_measured_explains_a_part_of_the_variance(P):
    X = torch.tensor([DESIGN], dtype=torch.float64)
    landed = P.perturb(X, unc.base_draws(64, P.n_base(3)))[0]
    parts = [rest_of(P, {0: x.item()}) for x in landed[:, 0]]
    means, covariances = (torch.stack(p) for p in zip(*parts, strict=True))
    mean, covariance = moments(P)
    # E E[x' | m] = E x' and E Cov[x' | m] + Cov E[x' | m] = Cov x'; Sobol draws are even
    std = covariance.diagonal().sqrt()
    assert ((means.mean(0) - mean).abs() <= 0.03 * std).all()
    total = covariances.mean(0) + means.mT.cov()
    assert ((total - covariance).abs() <= 0.1 * std.outer(std)).all()


@pytest.mark.parametrize("P", INDEPENDENT.values(), ids=INDEPENDENT)
def test_independent_columns_say_nothing_about_each_other(P):
    point, around = unc.conditional(P, DESIGN, {1: 3.2})
    assert point == (2.0, 3.2, 1.0)
    expected = unc.Product([P.on_columns([0, 2]), unc.Exact()], [[0, 2], [1]])
    X = torch.tensor([point], dtype=torch.float64)
    base = unc.base_draws(64, 3)
    torch.testing.assert_close(around.perturb(X, base), expected.perturb(X, base))


def test_blocks_say_nothing_about_each_other():
    P = unc.Product([unc.Beta(2, 3), NORMAL], [[1], [0, 3, 2]])
    point, around = unc.conditional(P, [2.0, 9.0, 1.0, 3.0], {0: 2.4, 2: 1.3})
    alone, rest = unc.conditional(NORMAL, DESIGN, {0: 2.4, 2: 1.3})
    assert point == (alone[0], 9.0, alone[2], alone[1])
    covariance = moments(around, point)[1]
    torch.testing.assert_close(covariance[3, 3], moments(rest, alone)[1][1, 1])
    torch.testing.assert_close(covariance[1, 1], torch.tensor(0.04).double())  # of the beta
    assert covariance[1, 3] == covariance[0, 0] == 0


def test_with_all_measured_nothing_is_uncertain_and_with_none_all_is():
    assert unc.conditional(NORMAL, DESIGN, {0: 1.0, 1: 2.0, 2: 3.0}) == (
        (1.0, 2.0, 3.0),
        unc.Exact(),
    )
    assert unc.conditional(NORMAL, DESIGN, {}) == (tuple(DESIGN), NORMAL)


def test_a_column_that_follows_from_another_is_known():
    point, around = unc.conditional(unc.Normal(cov=[[1.0, 2.0], [2.0, 4.0]]), [0.0, 0.0], {0: 1.0})
    assert point == pytest.approx((1.0, 2.0))
    assert moments(around, point)[1].abs().max() == 0


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"names the columns \[3\]; the design has 3"):
        unc.conditional(NORMAL, DESIGN, {3: 1.0})


def test_an_optimizer_takes_a_part_of_the_executed_input():
    P = {("x", "y"): unc.Normal(cov=[[0.01, 0.008], [0.008, 0.01]])}
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    measured, by_hand = Optimizer(space, P, seed=0), Optimizer(space, P, seed=0)
    rest = {"y": unc.Normal((0.01 - 0.008**2 / 0.01) ** 0.5)}
    for i in range(6):
        design, value = {"x": 0.15 * i, "y": (0.37 * i) % 1}, float(i % 3)
        measured.tell(design, value, executed={"x": design["x"] + 0.1})
        landed = {"x": design["x"] + 0.1, "y": design["y"] + 0.08}
        by_hand.tell(landed, value, uncertainty=rest, allow_outside=True)
    ours, theirs = (o.predict([{"x": 0.5, "y": 0.4}]) for o in (measured, by_hand))
    assert ours.to_numpy() == pytest.approx(theirs.to_numpy(), abs=1e-6)
