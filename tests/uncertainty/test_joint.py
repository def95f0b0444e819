"""Any marginals, joined by a Gaussian copula."""

import pytest
import scipy.stats
import torch

from airbo import Environment, Optimizer
from airbo import uncertainty as unc

R = [[1.0, 0.6], [0.6, 1.0]]
X = torch.tensor([[0.3, 2.0], [0.7, 5.0]], dtype=torch.float64)
LOG = torch.randn(40, generator=torch.Generator().manual_seed(0)).double().tolist()
MIXTURE = unc.GaussianMixture([[-1.0], [1.0]], [[[0.1]], [[0.2]]])
MARGINALS = {
    "beta": unc.Beta(2, 5),
    "lognormal": unc.LogNormal(0.1),
    "log": unc.Empirical(LOG),
    "mixture": MIXTURE,
    "clipped": unc.Normal(0.5).clipped(0.0, 1.0),
    "varying": unc.Varying(lambda x: unc.Normal(0.1 * (1 + x**2))),
    "scipy": unc.SciPy(scipy.stats.gamma(2, scale=0.1)),
}


def samples(u, n=8192):
    return u.perturb(X, unc.base_draws(n, u.n_base(2)))


@pytest.mark.parametrize("marginal", MARGINALS.values(), ids=MARGINALS)
def test_every_column_alone_is_its_marginal(marginal):
    joint = unc.Joint([marginal, unc.Uniform(-0.1, 0.1)], R)
    own = samples(joint)[..., 0]
    levels = torch.tensor([0.06, 0.26, 0.51, 0.76, 0.94], dtype=torch.float64)
    for x, values in zip(X[:, :1], own, strict=True):
        alone = marginal.perturb(x[None], unc.base_draws(8192, marginal.n_base(1)))[0, :, 0]
        scale = alone.std()
        torch.testing.assert_close(
            values.quantile(levels) / scale, alone.quantile(levels) / scale, atol=0.06, rtol=0
        )
    torch.testing.assert_close(joint.mean(X)[:, :1], marginal.mean(X[:, :1]))
    torch.testing.assert_close(joint.covariance(X)[:, 0, 0], marginal.covariance(X[:, :1])[:, 0, 0])


def test_normal_marginals_are_a_normal_distribution():
    joint = unc.Joint([unc.Normal(0.2), unc.Normal(3.0)], R)
    normal = unc.Normal(cov=[[0.04, 0.36], [0.36, 9.0]])
    torch.testing.assert_close(samples(joint), samples(normal))
    torch.testing.assert_close(joint.covariance(X), normal.covariance(X), atol=0.01, rtol=0.01)
    Z, W = torch.rand(2, 2, 5, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(joint.characteristic(Z), normal.characteristic(Z))
    torch.testing.assert_close(joint.characteristic(W), normal.characteristic(W))


@pytest.mark.parametrize("rho", [-0.9, 0.3, 0.8])
def test_ranks_are_correlated_as_those_of_a_normal_distribution(rho):
    joint = unc.Joint([unc.Beta(2, 5), unc.LogNormal(0.4)], [[1.0, rho], [rho, 1.0]])
    ranks = samples(joint)[0].argsort(dim=0).argsort(dim=0).double()
    expected = 6 / torch.pi * torch.tensor(rho / 2).asin().item()  # Spearman's
    assert torch.corrcoef(ranks.T)[0, 1].item() == pytest.approx(expected, abs=0.01)


def test_without_correlation_it_is_a_product():
    marginals = [unc.Beta(2, 5), unc.LogNormal(0.1)]
    joint, product = unc.Joint(marginals, [[1, 0], [0, 1]]), unc.Product(marginals)
    torch.testing.assert_close(samples(joint), samples(product))
    assert joint.independent_blocks(2) == product.independent_blocks(2)


def test_uncorrelated_groups_are_blocks():
    marginals = [unc.Normal(1.0), unc.Beta(2, 5), unc.Uniform(0, 1)]
    joint = unc.Joint(marginals, [[1, 0, 0.4], [0, 1, 0], [0.4, 0, 1]])
    pair = unc.Joint([marginals[0], marginals[2]], [[1, 0.4], [0.4, 1]])
    assert joint.independent_blocks(3) == [(pair, (0, 2)), (marginals[1], (1,))]


def test_full_correlation_moves_columns_together():
    joint = unc.Joint([unc.Uniform(0, 1), unc.Beta(2, 5)], [[1, 1], [1, 1]])
    first, second = samples(joint)[0].T
    order = first.argsort()
    assert (second[order].diff() >= -1e-6).all()  # square roots of R are rounded


def test_deviations_scale_together():
    joint = unc.Joint([unc.Beta(2, 5), unc.Normal(0.3)], R)
    x = X.unsqueeze(-2)
    torch.testing.assert_close(samples(joint.scaled(0.5)) - x, 0.5 * (samples(joint) - x))


def test_it_is_said_and_saved():
    joint = unc.Joint([unc.Beta(2, 5), unc.LogNormal(0.1)], correlation=R)
    assert unc.from_json(joint.to_json()) == joint
    assert joint.words(lambda v, unit=True: f"{v:g}").endswith("(log-normal); correlated")


@pytest.mark.parametrize("rho", [-0.5, 0.9, 0.99])
@pytest.mark.parametrize("measured", [-0.9, 0.0, 0.8])
def test_measuring_one_tells_of_the_other(measured, rho):
    joint = unc.Joint([unc.Uniform(-1, 1), unc.Uniform(-1, 1)], [[1, rho], [rho, 1]])
    point, rest = unc.conditional(joint, [0.0, 0.0], {0: measured})
    landed = torch.tensor([point], dtype=torch.float64)
    assert point[0] == measured
    # E[2 Φ(z₂) - 1 | z₁] = 2 Φ(ϱ z₁ / √(2 - ϱ²)) - 1
    z = torch.special.ndtri(torch.tensor((1 + measured) / 2, dtype=torch.float64))
    expected = 2 * torch.special.ndtr(rho * z / (2 - rho**2) ** 0.5) - 1
    assert rest.mean(landed)[0, 1].item() == pytest.approx(expected.item(), abs=1e-3)
    assert rest.perturb(landed, unc.base_draws(512, rest.n_base(2))).abs().max() <= 1


def test_a_positive_quantity_stays_positive_where_another_was_measured():
    law = unc.Joint([unc.Normal(8.0), unc.LogNormal(0.8)], R)
    space = {
        "x": (0.0, 1.0),
        "humidity": Environment(20.0, 90.0, typical=50.0),
        "load": Environment(0.05, 50.0, typical=1.0, log=True),
    }
    optimizer = Optimizer(space, {("humidity", "load"): law}, n_initial=2)
    for x in (0.1, 0.4, 0.7):
        optimizer.tell({"x": x}, x, executed={"humidity": 38.0 + 20 * x})
    assert 0 < optimizer.evaluate({"x": 0.3}, given={"humidity": 38.0}).mean < 1


def test_what_follows_from_the_others_is_known_with_them():
    R3 = [[1, 1, 0.3], [1, 1, 0.3], [0.3, 0.3, 1]]
    joint = unc.Joint([unc.Uniform(0, 1), unc.Beta(2, 5), unc.Normal(1.0)], R3)
    point, rest = unc.conditional(joint, [0.0, 0.0, 0.0], {0: 0.5})
    [landed] = rest.perturb(torch.tensor([point]).double(), unc.base_draws(64, rest.n_base(3)))
    median = scipy.stats.beta(2, 5).ppf(0.5)
    assert landed[:, 1].tolist() == pytest.approx([median] * 64, abs=1e-4)
    assert landed[:, 2].std().item() == pytest.approx((1 - 0.3**2) ** 0.5, rel=0.1)


def test_what_is_known_step_by_step_is_known_at_once():
    R3 = [[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]]
    joint = unc.Joint([unc.Uniform(0, 1), unc.Beta(2, 5), unc.LogNormal(0.3)], R3)
    _, at_once = unc.conditional(joint, [0.0, 0.0, 1.0], {0: 0.8, 1: 0.3})
    _, first = unc.conditional(joint, [0.0, 0.0, 1.0], {0: 0.8})
    _, then = unc.conditional(first, [0.8, 0.0, 1.0], {0: 0.8, 1: 0.3})
    base, landed = unc.base_draws(64, 3), torch.tensor([[0.8, 0.3, 1.0]]).double()
    torch.testing.assert_close(then.perturb(landed, base), at_once.perturb(landed, base))


def test_an_environment_has_a_joint_law():
    space = {
        "x": (0.0, 1.0),
        "humidity": Environment(0.0, 100.0, typical=40.0),
        "heat": Environment(0.0, 40.0, typical=20.0),
    }
    law = unc.Joint([unc.Beta(2, 5, loc=-20, scale=70), unc.Normal(3.0)], R)
    optimizer = Optimizer(space, {("humidity", "heat"): law}, n_initial=2)
    for x in (0.1, 0.4, 0.7):
        optimizer.tell({"x": x}, x, executed={"humidity": 45.0})
    assert 0 <= optimizer.ask()["x"] <= 1
    restored = Optimizer.from_json(optimizer.to_json())
    assert restored.uncertainty == optimizer.uncertainty


@pytest.mark.parametrize(
    ("marginals", "correlation", "message"),
    [
        ([unc.Normal(1)], R, "1 marginals need a correlation matrix with 1 rows, got 2"),
        ([unc.Normal(1), unc.Ring(1)], R, "acts on designs with 2 columns, got 1"),
        ([unc.Normal(1), unc.Normal(1)], [[1, 2], [2, 1]], "positive semi-definite"),
        ([unc.Normal(1), unc.Normal(1)], [[1, 0.5], [0.1, 1]], "must be symmetric"),
        ([unc.Normal(1), unc.Normal(1)], [[4, 0.5], [0.5, 1]], "ones on its diagonal"),
        ([unc.Normal(1), unc.Normal(1)], [1, 0.5], "square matrix"),
    ],
)
def test_what_makes_no_sense_is_refused(marginals, correlation, message):
    with pytest.raises(ValueError, match=message):
        unc.Joint(marginals, correlation)


def test_a_centre_has_a_number_for_each_marginal():
    with pytest.raises(ValueError, match="a number for each of 2 marginals"):
        unc.Joint([unc.Normal(1), unc.Normal(1)], R, centre=[0.1])
