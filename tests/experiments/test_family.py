"""Other ways to compare uncertain inputs: each is what it is called."""

import math

import pytest
import torch

from airbo.embeddings import Empirical
from airbo.models import ExpectationGP, NominalGP
from airbo.uncertainty import Beta, Exact, Normal, base_draws
from experiments.subjects.data import fit
from experiments.subjects.family import (
    FAMILY,
    ColumnSum,
    borrowed,
    noisy_input,
)

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


def unit(d):
    return UNIT.expand(2, d).clone()


def test_under_a_sum_over_columns_mmds_of_columns_add_up():
    sums, P, Q = ColumnSum(2).double(), Normal([0.1, 0.2]), Beta(2.0, 5.0, scale=0.3)
    sums.lengthscale = torch.tensor([[0.2, 0.5]])
    X, bounds, many = base_draws(5, 2), unit(2), Empirical(64)
    samples = [u.perturb(X, base_draws(64, u.n_base(2))) for u in (P, Q)]

    def of_column(j):
        alone = ColumnSum(1).double()
        alone.lengthscale = sums.lengthscale[0, j]
        means = [
            alone(a[..., [j]], b[..., [j]]).to_dense().mean((-2, -1))
            for a, b in ((samples[0], samples[0]), (samples[1], samples[1]), samples)
        ]
        return means[0] + means[1] - 2 * means[2]

    embedding = many.embed([P, Q], sums, bounds)
    numbers = X.new_ones(5, 1)
    f, g = (embedding(torch.cat([X, n * numbers], dim=-1)) for n in (0, 1))
    torch.testing.assert_close(embedding.mmd2(f, g, diag=True), of_column(0) + of_column(1))
    torch.testing.assert_close(sums(X, X, diag=True), sums(X).to_dense().diagonal())


def line(n=12):
    X = base_draws(n, 1)
    return X, 3 * X


def test_noise_of_a_slope_is_that_of_the_input_times_the_slope():
    X, Y = line()
    narrow, wide = (
        noisy_input(X, Y, Normal(std), unit(1)).likelihood.noise_covar.noise * Y.var()
        for std in (0.1, 0.2)
    )
    torch.testing.assert_close(4 * narrow, wide)
    # a plain GP's slopes of a line are off by some per cent at its ends
    torch.testing.assert_close(narrow, torch.full((12,), 0.09).double(), rtol=0.2, atol=0)


def test_where_designs_are_hit_a_noisy_input_gp_is_a_plain_one_with_this_noise():
    X, Y = line()
    model = noisy_input(X, Y, Exact(), unit(1))
    assert model.likelihood.noise_covar.noise.max() <= 1e-6


def test_borrowed_length_scales_stretch_what_matters_and_leave_the_volume():
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(40, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(12 * X[:, :1])
    model = borrowed(X, Y, Normal(0.01), unit(2))
    lively, idle = model.features.width.reciprocal().tolist()
    assert lively > 2 * idle
    assert math.isclose(lively * idle, 1, rel_tol=1e-9)


def test_on_a_line_there_is_nothing_to_borrow():
    X, Y = line()
    own, other = (f(X, Y, Normal(0.1), unit(1)) for f in (ExpectationGP, borrowed))
    with torch.no_grad():
        torch.testing.assert_close(own.posterior(X).mean, other.posterior(X).mean)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("d", [1, 2])
def test_all_of_them_can_be_fitted_and_predict(name, d):
    X = base_draws(12, d)
    Y = torch.sin(6 * X).sum(-1, keepdim=True)
    model = fit(FAMILY[name](X, Y, Normal(0.02), unit(d)))
    plain = fit(NominalGP(X, Y, Normal(0.02), unit(d)))
    queries = base_draws(20, d, seed=1)
    truth = torch.sin(6 * queries).sum(-1)
    with torch.no_grad():
        posterior, other = model.posterior(queries), plain.posterior(queries)
    assert (posterior.variance > 0).all()
    error, typical = (p.mean.squeeze(-1) - truth for p in (posterior, other))
    assert error.square().mean() < 0.25 * truth.var() + typical.square().mean()
