"""Few Gaussians in place of a deviation, where a base kernel is too wide to tell them apart."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.embeddings import Nystrom, Quadrature, RationalQuadraticSum, default_base_kernel
from airbo.embeddings.compression import compress
from airbo.embeddings.factors import Mixture
from airbo.embeddings.gaussians import GaussianSums
from airbo.embeddings.reduction import Gaussians, probes, reduced
from airbo.embeddings.resolutions import TOLERANCE
from airbo.embeddings.scales import TOLERANCE as SHORTENED
from airbo.embeddings.shifts import ShiftEmbedding
from tests.surrogates import box, designs


def deviations(m, d=3):
    """Skewed and dependent columns."""
    draws = torch.randn(m, d, generator=torch.Generator().manual_seed(m), dtype=torch.float64)
    return 0.03 * (draws.cumsum(-1) + draws.square())


def pairs_of(w, m, C):
    """The difference of two independent draws from a sum of Gaussians."""
    return Gaussians(
        (w.unsqueeze(-1) * w).flatten(),
        (m.unsqueeze(1) - m).flatten(0, 1),
        (C.unsqueeze(1) + C).flatten(0, 1),
    )


def embed(uncertainty, kernel, d, fitting=False):
    return ShiftEmbedding(12, [uncertainty], kernel.double(), box(d, 0.0, 1.0)).train(fitting)


@pytest.fixture(scope="module")
def many():
    return pairs_of(*compress(deviations(400), 24))


@pytest.fixture(scope="module")
def logged():
    return unc.Empirical(deviations(200))


def test_cells_keep_the_mean_and_the_covariance_of_all_samples():
    samples = deviations(500)
    weights, means, covs = compress(samples, 16)
    assert len(weights) == 16
    mean = weights @ means
    torch.testing.assert_close(mean, samples.mean(0))
    whole = Gaussians(weights, means, covs).around(mean)
    torch.testing.assert_close(whole, torch.cov(samples.mT, correction=0))


def test_samples_that_are_all_the_same_are_one_cell():
    weights, _, covs = compress(torch.ones(50, 2, dtype=torch.float64), 8)
    assert weights.tolist() == [1.0]
    assert not covs.any()


def test_few_gaussians_mirror_each_other_and_weigh_as_much(many):
    for n, few in zip((1, 3, 9), reduced(many, (1, 3, 9)), strict=True):
        assert len(few.weights) == n
        assert few.weights.sum().item() == pytest.approx(1, abs=1e-9)
        half = n // 2 + 1
        assert torch.equal(few.means[1:half], -few.means[half:])
        assert torch.equal(few.covs[1:half], few.covs[half:])


def test_the_more_gaussians_the_more_they_look_like_the_many(many):
    t = probes(3, seed=2) * many.std
    precisions = torch.tensor([1.0, 10.0], dtype=torch.float64)
    truth = many.seen(precisions, t)
    one, three, nine = (
        (few.seen(precisions, t) - truth).abs().amax(-1) for few in reduced(many, (1, 3, 9))
    )
    assert bool((three < one / 4).all())
    assert bool((nine < three).all())


def test_sums_of_gaussians_are_the_mixtures_that_they_were_made_of():
    u = torch.rand(20, 4, generator=torch.Generator().manual_seed(0)).double()
    precisions = torch.tensor([0.5, 3.0]).double()
    axes = torch.linalg.qr(u[:6, :2].reshape(3, 2, 2) + torch.eye(2)).Q
    turned = Mixture((2, 0), precisions, u[0, :3], u[1:4, :2], u[4:7, :2], axes)
    plain = Mixture((1, 3), precisions, u[0, 3:], u[7:8, :2], u[8:9, :2])
    t = u[9:] - 0.5
    expected = turned(t[:, [2, 0]]) * plain(t[:, [1, 3]])
    sums = GaussianSums.of([[turned, plain], [plain]], d=4)
    torch.testing.assert_close(sums(t), torch.cat([expected, plain(t[:, [1, 3]])], dim=-1))
    weights = torch.tensor([0.1, 2.0, -1.0, 0.3]).double()
    torch.testing.assert_close(sums.summed(weights)(t).squeeze(-1), sums(t) @ weights)


CASES = [
    (unc.Beta(0.4, 0.2, scale=0.1), 3),
    (unc.GaussianMixture([[0.0, 0.0], [-0.1, 0.1]], [[0.001, 0.0], [0.0, 0.002]]), 2),
    (unc.Product([unc.Ring(0.1), unc.Normal(0.05)]), 4),
]


@pytest.mark.parametrize(("uncertainty", "d"), CASES, ids=repr)
@pytest.mark.parametrize("lengthscale", [0.05, 0.2, 1.0])
def test_coarser_resolutions_stay_within_the_tolerance(uncertainty, d, lengthscale):
    X = designs(12, d, low=0.0, high=1.0)
    embedding = embed(uncertainty, RationalQuadraticSum(lengthscale), d)
    beside_another = embed(uncertainty, RationalQuadraticSum(lengthscale), d)
    beside_another.number_of(unc.Exact())  # with several uncertainties, all see the finest
    with torch.no_grad():
        coarse, finest = (e.inner(e(X), e(X)) for e in (embedding, beside_another))
    torch.testing.assert_close(coarse, finest, atol=2 * TOLERANCE + SHORTENED, rtol=0)
    sizes = [len(g.exact.weights) for g in embedding._groups(0, 0) if isinstance(g.exact, Mixture)]
    assert all(size <= 3 for size in sizes)


def true_kernel(deviations, kernel, X):
    differences = (deviations.unsqueeze(1) - deviations).flatten(0, 1)
    with torch.no_grad():
        inner = torch.stack(
            [kernel(differences, t.unsqueeze(0)).to_dense().mean() for t in X - X[:1]]
        )
    return torch.exp(-2 * (inner[0] - inner))


@pytest.mark.parametrize(("lengthscale", "error"), [(None, 2e-4), (0.25, 3e-4), (0.05, 1e-2)])
def test_logged_deviations_in_several_columns_are_exact_enough(logged, lengthscale, error):
    kernel = default_base_kernel(3) if lengthscale is None else RationalQuadraticSum(lengthscale)
    Z = designs(3, 3, low=0.0, high=1.0)
    X = torch.cat([Z, Z[:1] + 0.03, Z[:1] - 0.06])
    truth = true_kernel(deviations(200), kernel.double(), X)

    def errors(estimator, fitting):
        e = estimator.embed([logged], kernel, box(3, 0.0, 1.0)).train(fitting)
        with torch.no_grad():
            return (torch.exp(-e.mmd2(e(X), e(X)))[0] - truth).abs().max().item()

    nystrom = errors(Nystrom(160, 10), False)
    for fitting in (True, False):
        assert errors(Quadrature(), fitting) < min(error, nystrom)


@pytest.mark.parametrize("lengthscale", [0.1, 0.5, 2.0])
def test_many_designs_under_logged_deviations_have_a_covariance(logged, lengthscale):
    X = designs(150, 3, low=0.0, high=1.0)
    embedding = embed(logged, RationalQuadraticSum(lengthscale), 3)
    with torch.no_grad():
        K = torch.exp(-embedding.mmd2(embedding(X), embedding(X)))
    torch.testing.assert_close(K, K.mT)
    assert torch.linalg.eigvalsh(K)[0] > -1e-8


def test_gradients_under_logged_deviations_are_those_of_the_function(logged):
    embedding = embed(logged, RationalQuadraticSum(0.2), 3)
    known = embedding(designs(4, 3, seed=1, low=0.0, high=1.0)).detach()
    X = designs(3, 3, low=0.0, high=1.0).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: embedding.inner(embedding(X), known), (X,), atol=1e-5)


def test_a_predicted_pair_costs_few_gaussians_however_many_pairs_of_cells_there_are(logged):
    kappa = embed(logged, default_base_kernel(3), 3)._prepared(0, 0)
    assert kappa.size < 100
