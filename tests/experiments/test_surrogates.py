"""The experiments about surrogates: figures 2, 3 and 7."""

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import UpperConfidenceBound
from scipy.special import roots_jacobi

from airbo.embeddings import Empirical, Nystrom, RationalQuadraticSum
from experiments.paper import dilemma
from experiments.paper import posteriors as post
from experiments.paper.dilemma import DILEMMA, ESTIMATED, estimates, exact_mmd2, n_local_maxima
from experiments.registry import PAPERS
from experiments.subjects.methods import DEFAULT, ERBF, GP, NYSTROM, SKL
from experiments.subjects.redrawn import Redrawn, fresh
from experiments.subjects.uncertainties import PAPERS as UNCERTAINTIES
from tests.experiments.small import small_tasks

BETA = UNCERTAINTIES["beta"]


def fitted(method, case, seed=1):
    return post.fitted({"n": 6, **method.config()}, post.problem(case), seed)


def drawn(method, shift, n_draws=400):
    config = {"lengthscale": 0.1, "n_draws": n_draws, **method.config()}
    return estimates(BETA, shift, config, torch.Generator().manual_seed(0))


# -- estimates of MMD²


@pytest.mark.parametrize("lengthscale", [0.1, 1.0])
def test_exact_mmd2_is_that_of_two_hundred_quadrature_nodes(lengthscale):
    t, weights = roots_jacobi(200, 0.2 - 1, 0.4 - 1)
    u, w = 0.1 * (t + 1) / 2, weights / weights.sum()
    points = torch.tensor(np.concatenate([u, u + 0.07]), dtype=torch.float64).unsqueeze(-1)
    signed = torch.tensor(np.concatenate([w, -w]))
    K = RationalQuadraticSum(lengthscale).double()(points).to_dense().detach()
    expected = (signed @ K @ signed).item()
    [found] = exact_mmd2(BETA, np.array([0.07]), lengthscale)
    assert found == pytest.approx(expected, rel=2e-3)


def test_exact_value_is_the_mean_of_u_statistics():
    for shift in (0.0, 0.1):
        found = drawn(ESTIMATED[0], shift)
        [exact] = exact_mmd2(BETA, np.array([shift]), 0.1)
        assert abs(found.mean() - exact) < 4 * found.std() / len(found) ** 0.5


def test_spread_of_estimates_shrinks_with_the_samples():
    few, many = (drawn(method, 0.1, 100).std() for method in ESTIMATED[:2])
    # a U-statistic away from 0 has standard deviation ~ 1 / √m
    assert few / many == pytest.approx(5**0.5, rel=0.3)


def test_u_statistic_is_sometimes_negative_and_nystrom_never():
    assert (drawn(ESTIMATED[0], 0.0, 50) < 0).any()
    assert (drawn(ESTIMATED[2], 0.0, 50) > -1e-9).all()


# -- draws that are held, and not


def test_redrawn_candidates_have_the_same_distribution_and_their_own_draws():
    random = torch.Generator().manual_seed(0)
    X = torch.tensor([[0.2], [0.2], [0.7]], dtype=torch.float64)
    samples, again = (fresh(X, BETA, 4000, random) for _ in range(2))
    assert not torch.equal(samples, again)
    assert not torch.equal(samples[0], samples[1])
    deviations = (samples - X.unsqueeze(-2)).flatten()
    assert deviations.mean().item() == pytest.approx(0.1 * 0.4 / 0.6, abs=2e-3)
    assert deviations.min() > -1e-12
    assert deviations.max() < 0.1 + 1e-12


@pytest.mark.parametrize("estimator", [Empirical(6), Nystrom(12, 6)])
def test_redrawn_observations_keep_their_samples_and_candidates_of_a_search_get_new_ones(estimator):
    X = torch.tensor([[0.2], [0.7]], dtype=torch.float64)
    embedding = Redrawn(estimator, X, torch.Generator().manual_seed(0)).embed(
        [BETA], RationalQuadraticSum(0.1).double(), torch.tensor([[0.0], [1.0]]).double()
    )
    observed, other = embedding(X), embedding(X + 0.01)
    assert torch.equal(embedding(X), observed)
    assert torch.equal(embedding(X.flip(0)), observed.flip(0))
    assert not torch.equal(embedding(X.flip(0) + 0.01), other.flip(0))
    assert not torch.equal(embedding(X.clone().requires_grad_()), observed)


def test_samples_that_move_with_the_design_are_not_redrawn():
    with pytest.raises(ValueError, match="additive"):
        fresh(torch.zeros(1, 1).double(), UNCERTAINTIES["varying beta"], 3, torch.Generator())


def test_held_draws_answer_the_same_question_twice_alike_and_redrawn_ones_do_not():
    x = np.array([0.1, 0.33])
    for draws, alike in (("held", True), ("redrawn", False)):
        config = {"case": "beta", "n": 5, "draws": draws, **ESTIMATED[0].config()}
        function = UpperConfidenceBound(dilemma.models(config, seed=0)[0], beta=4.0)
        first = dilemma.values(function, x)
        dilemma.values(function, x[::-1].copy())  # what was asked last is remembered
        assert np.array_equal(first, dilemma.values(function, x)) == alike


def test_local_maxima_are_counted_inside():
    assert n_local_maxima(np.array([3.0, 1.0, 2.0, 1.0, 0.0, 5.0])) == 1


def test_search_climbs_and_stays_inside():
    function = UpperConfidenceBound(fitted(DEFAULT, "beta").eval(), beta=4.0)
    end = dilemma.maximize(function, 0.4)
    start, reached = dilemma.values(function, np.array([0.4, end]))
    assert reached >= start
    assert 0 <= end <= 1


# -- posteriors


def test_scores_of_a_standard_normal_belief():
    belief = post.Belief(np.zeros(4), np.ones(4))
    scores = belief.scores(np.array([0.0, 1.0, -1.0, 3.0]))
    assert scores["rmse"] == pytest.approx((11 / 4) ** 0.5, rel=1e-4)
    assert scores["log_density"] == pytest.approx(-11 / 8 - 0.5 * np.log(2 * np.pi), rel=1e-4)
    assert scores["coverage"] == 0.75


def test_plain_gp_knows_no_step_and_no_direction():
    model = fitted(GP, "step chi²")
    assert post.jump(model, 0.6) == pytest.approx(1, abs=1e-4)
    assert post.correlation(model, 0.6) == pytest.approx(1, abs=1e-6)
    assert post.lone(model, 0.6, 0.02) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", [DEFAULT, NYSTROM, ERBF, SKL], ids=lambda m: m.label)
def test_surrogates_that_know_the_uncertainty_see_the_step(method):
    model = fitted(method, "step chi²")
    assert post.correlation(model, 0.6) < 0.99
    assert post.lone(model, 0.6, 0.02) > 1.05  # what is learned at 0.6 is about the right side


def test_lone_observation_leaves_the_model_as_it_was():
    model = fitted(DEFAULT, "varying beta")
    before = post.believed(model, [0.2, 0.9]).mean
    post.lone(model, 0.42, 0.02)
    np.testing.assert_array_equal(post.believed(model, [0.2, 0.9]).mean, before)


# -- experiments


@pytest.mark.slow
def test_same_seed_gives_the_same_result():
    task = next(t for t in small_tasks(DILEMMA) if t.config.get("draws") == "redrawn")
    first, again = (DILEMMA.run(task) for _ in range(2))
    assert first == again


def test_experiments_come_in_the_order_of_the_paper():
    names = ["modelling", "dilemma", "inference-time", "paper"]
    assert list(PAPERS)[: len(names)] == names
