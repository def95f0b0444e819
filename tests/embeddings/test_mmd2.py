"""The distance by itself: closed forms and the paper's formulas written out."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from hypothesis import given
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom, Quadrature, RationalQuadraticSum, mmd2
from airbo.uncertainty import base_draws


def rbf(lengthscale):
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


def gaussian_mmd2(shift, std, lengthscale):
    """MMD² between N(0, std²) and N(shift, std²) under an RBF kernel."""
    v = lengthscale**2 + 2 * std**2
    return 2 * lengthscale / math.sqrt(v) * (1 - math.exp(-(shift**2) / (2 * v)))


def draws(n, d, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rational_quadratics(x, y, lengthscale=1.0):
    """The paper's base kernel, one pair of points at a time."""
    r2 = np.square(x[:, None] - y[None]).sum(-1)
    return sum((1 + r2 / (2 * a * lengthscale**2)) ** -a for a in (0.2, 0.5, 1, 2, 5))


@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("std", [0.05, 0.2])
def test_mmd_between_gaussians_matches_the_closed_form(shift, std):
    X = torch.zeros(1, 1, dtype=torch.float64)
    x = unc.Normal(std).perturb(X, base_draws(2048, 1))[0]
    y = unc.Normal(std).perturb(X + shift, base_draws(2048, 1, seed=1))[0]
    expected = gaussian_mmd2(shift, std, 0.5)
    assert mmd2(x, y, rbf(0.5)).item() == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("std", [0.05, 0.2])
def test_the_default_estimator_gives_the_closed_form_between_gaussians(shift, std):
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    embedding = Quadrature().embed([unc.Normal(std)], rbf(0.5), bounds)
    features = embedding(torch.tensor([[0.0], [shift]], dtype=torch.float64))
    distance = embedding.mmd2(features, features)[0, 1].item()
    assert distance == pytest.approx(gaussian_mmd2(shift, std, 0.5), abs=1e-12)


def test_the_u_statistic_is_the_formula_of_the_paper():
    x, y = draws(9, 2).numpy(), draws(9, 2, seed=1).numpy() + 0.3
    m = len(x)
    k_xx, k_yy, k_xy = (rational_quadratics(*pair) for pair in ((x, x), (y, y), (x, y)))
    different = ~np.eye(m, dtype=bool)
    expected = (
        k_xx[different].sum() / (m * (m - 1))
        + k_yy[different].sum() / (m * (m - 1))
        - 2 * k_xy.sum() / m**2
    )
    estimate = mmd2(torch.tensor(x), torch.tensor(y), estimator=Empirical(m))
    assert estimate.item() == pytest.approx(expected, abs=1e-7)


def test_the_u_statistic_is_unbiased_and_so_sometimes_negative():
    estimates = torch.stack(
        [mmd2(draws(5, 1, i), draws(5, 1, 1000 + i), estimator=Empirical(5)) for i in range(300)]
    )
    assert estimates.min() < 0
    assert abs(estimates.mean()) < 4 * estimates.std() / math.sqrt(300)


def test_nystrom_is_the_formula_of_the_paper():
    estimator = Nystrom(40, 6)
    x, y = draws(40, 2), draws(40, 2, seed=1) + 0.3
    chosen = estimator.landmarks(40).numpy()
    points, weights = [], []
    for samples in (x.numpy(), y.numpy()):
        landmarks = samples[chosen]
        K_h = rational_quadratics(landmarks, landmarks)
        K_hm = rational_quadratics(landmarks, samples)
        points.append(landmarks)
        weights.append(np.linalg.pinv(K_h) @ K_hm.mean(axis=1))
    (z_p, z_q), (a_p, a_q) = points, weights
    expected = (
        a_p @ rational_quadratics(z_p, z_p) @ a_p
        + a_q @ rational_quadratics(z_q, z_q) @ a_q
        - 2 * a_p @ rational_quadratics(z_p, z_q) @ a_q
    )
    assert mmd2(x, y, estimator=estimator).item() == pytest.approx(expected, abs=1e-6)


def test_nystrom_with_all_samples_as_landmarks_is_the_v_statistic():
    x, y = draws(20, 2), draws(20, 2, seed=1) + 0.3
    assert mmd2(x, y, estimator=Nystrom(20, 20)).item() == pytest.approx(
        mmd2(x, y).item(), abs=1e-6
    )


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 10**6), st.floats(0.05, 5))
def test_coinciding_samples_have_distance_zero(n, d, seed, lengthscale):
    x = draws(n, d, seed)
    kernel = RationalQuadraticSum(lengthscale).double()
    assert mmd2(x, x, kernel).item() == pytest.approx(0, abs=1e-12)
    if n > 1:
        nystrom = Nystrom(n, max(1, n // 2))
        assert mmd2(x, x, kernel, nystrom).item() == pytest.approx(0, abs=1e-12)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 10**6), st.floats(0.05, 5))
def test_the_v_statistic_is_never_negative(s, t, seed, lengthscale):
    x, y = draws(s, 2, seed), draws(t, 2, seed + 1)
    assert mmd2(x, y, RationalQuadraticSum(lengthscale).double()).item() > -1e-12


@pytest.mark.parametrize("estimator", [None, Empirical(8), Nystrom(8, 4)], ids=repr)
def test_a_batch_of_sets_equals_a_loop(estimator):
    x, y = draws(24, 2).reshape(3, 8, 2), draws(24, 2, 1).reshape(3, 8, 2)
    looped = torch.stack([mmd2(a, b, estimator=estimator) for a, b in zip(x, y, strict=True)])
    torch.testing.assert_close(mmd2(x, y, estimator=estimator), looped)


@pytest.mark.parametrize("kernel", [rbf(0.5), MaternKernel(1.5).double()], ids=["rbf", "matern"])
def test_any_gpytorch_kernel_can_stand_in(kernel):
    x, y = draws(6, 2), draws(7, 2, 1)
    K = kernel(torch.cat([x, y])).to_dense()
    w = torch.tensor([1 / 6] * 6 + [-1 / 7] * 7, dtype=torch.float64)
    assert mmd2(x, y, kernel).item() == pytest.approx((w @ K @ w).item(), abs=1e-12)


def test_the_distance_has_gradients_with_respect_to_the_samples():
    x, y = draws(5, 2).requires_grad_(), draws(6, 2, 1).requires_grad_()
    for estimator in (None, Empirical(5), Nystrom(5, 3)):
        assert torch.autograd.gradcheck(
            lambda a, b, e=estimator: mmd2(a, b, estimator=e), (x, y), atol=1e-4
        )


# E|estimate - MMD| of independent samples: the bound of the paper's remark (Lemma E.1)
# |MMD_est - MMD| <= 4 Φ sqrt(2 log(6/ε) / m), with Φ² = max k(x, x)

SHIFT, STD, LENGTH = 0.3, 0.2, 0.5


def errors(m, estimator, repeats=40):
    truth = math.sqrt(gaussian_mmd2(SHIFT, STD, LENGTH))
    estimates = torch.stack(
        [
            mmd2(STD * draws(m, 1, i), SHIFT + STD * draws(m, 1, 10**4 + i), rbf(LENGTH), estimator)
            for i in range(repeats)
        ]
    )
    return (estimates.clamp_min(0).sqrt() - truth).abs()


def landmarks(m):
    return math.ceil(math.sqrt(m) * math.log(m))


@pytest.mark.parametrize(
    "estimator",
    [lambda m: None, Empirical, lambda m: Nystrom(m, min(m, landmarks(m)))],
    ids=["v-statistic", "u-statistic", "nystrom"],
)
def test_the_error_falls_with_samples_and_stays_below_the_bound(estimator):
    sizes = [16, 64, 256]
    all_errors = [errors(m, estimator(m)) for m in sizes]
    typical = [e.square().mean().sqrt().item() for e in all_errors]
    slope = np.polyfit(np.log(sizes), np.log(typical), 1)[0]
    assert slope < -0.35  # m^-1/2, up to the scatter of 40 repeats
    for epsilon in (0.5, 0.1):
        for m, e in zip(sizes, all_errors, strict=True):
            bound = 4 * math.sqrt(2 * math.log(6 / epsilon) / m)
            assert (e <= bound).double().mean() >= 1 - epsilon


def test_sobol_draws_converge_faster_than_independent_ones():
    X = torch.zeros(1, 1, dtype=torch.float64)
    truth = gaussian_mmd2(SHIFT, STD, LENGTH)

    def error(m, seed):
        x = unc.Normal(STD).perturb(X, base_draws(m, 1, seed))[0]
        y = unc.Normal(STD).perturb(X + SHIFT, base_draws(m, 1, 100 + seed))[0]
        return mmd2(x, y, rbf(LENGTH)).item() - truth

    few, many = (math.hypot(*(error(m, seed) for seed in range(10))) for m in (16, 1024))
    assert many < few / 16  # independent draws: 8 times smaller


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: mmd2(x, x[..., :1]), "x has 2 columns but y has 1"),
        (lambda x: mmd2(x[0], x[0]), r"x must hold at least 1 sample\(s\) in rows"),
        (lambda x: mmd2(x[:0], x), r"x must hold at least 1 sample\(s\)"),
        (lambda x: mmd2(x, x[:1], estimator=Empirical(4)), r"y must hold at least 2 sample\(s\)"),
        (lambda x: mmd2(x, x.clone().fill_(math.nan)), "y contains values that are not finite"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_samples_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(draws(4, 2))


def test_an_estimator_without_samples_is_refused():
    with pytest.raises(TypeError, match="mmd2 takes Empirical, Nystrom or None"):
        mmd2(draws(4, 2), draws(4, 2), estimator=Quadrature())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nystrom(10, 11), "n_landmarks must not exceed n_samples, got 11 landmarks for 10"),
        (lambda: Nystrom(10, 0), "n_landmarks must be a whole number >= 1, got 0"),
        (lambda: Nystrom(0, 0), "n_samples must be a whole number >= 1, got 0"),
        (lambda: Empirical(-1), "n_samples must be a whole number >= 1, got -1"),
        (lambda: Empirical(True), "n_samples must be a whole number >= 1, got True"),
        (lambda: Quadrature(0), "n_atoms must be a whole number >= 1, got 0"),
    ],
)
def test_an_estimator_with_impossible_counts_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
