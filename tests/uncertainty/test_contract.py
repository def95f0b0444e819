"""Laws that every input uncertainty keeps."""

import copy
import functools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.testing import check_uncertainty
from airbo.uncertainty.base import _deviation_sums
from airbo.uncertainty.gaussians import Resolution
from tests.strategies import designs, uncertainties
from tests.uncertainties import ALL_UNCERTAINTIES, SAVEABLE, UNSAVEABLE, one_of_each_type

every_class = pytest.mark.parametrize(
    ("uncertainty", "d"), one_of_each_type(ALL_UNCERTAINTIES), ids=repr
)


def some_designs(*shape):
    generator = torch.Generator().manual_seed(1)
    return torch.rand(*shape, generator=generator, dtype=torch.float64) * 2 - 1


def draws_for(uncertainty, d, n_samples=16, seed=0):
    return unc.base_draws(n_samples, uncertainty.n_base(d), seed)


@pytest.mark.parametrize(("uncertainty", "d"), ALL_UNCERTAINTIES, ids=repr)
def test_every_kind_keeps_the_laws(uncertainty, d):
    check_uncertainty(uncertainty, d)


@pytest.mark.parametrize(
    ("uncertainty", "d"),
    [
        p
        for p in one_of_each_type(ALL_UNCERTAINTIES)
        if type(p[0]) not in (unc.Sampler, unc.Clipped)
    ],
    ids=repr,
)
def test_moments_have_the_gradients_of_finite_differences(uncertainty, d):
    X = some_designs(2, d).requires_grad_()
    assert torch.autograd.gradcheck(uncertainty.mean, X)
    assert torch.autograd.gradcheck(
        lambda x: uncertainty.covariance(x) + 0 * x.sum(), X
    )  # the covariance of an additive one has no graph of its own


@every_class
def test_use_under_inference_mode_leaves_later_gradients_intact(uncertainty, d):
    fresh = copy.deepcopy(uncertainty)
    _deviation_sums.cache_clear()
    X, base = some_designs(2, d), draws_for(uncertainty, d)
    with torch.inference_mode():
        fresh.perturb(X, base), fresh.mean(X), fresh.covariance(X)
    X.requires_grad_()
    total = fresh.perturb(X, base).square().sum() + fresh.mean(X).square().sum()
    (gradient,) = torch.autograd.grad(total, X)
    assert torch.isfinite(gradient).all()


@every_class
def test_what_is_not_called_additive_is_not(uncertainty, d):
    X, base = some_designs(9, d), draws_for(uncertainty, d)
    deviations = uncertainty.perturb(X, base) - X.unsqueeze(-2)
    alike = torch.allclose(deviations, deviations[:1].expand_as(deviations))
    assert alike == uncertainty.is_additive


def test_what_can_be_saved_is_known():
    for uncertainty, _ in SAVEABLE:
        assert unc.from_json(uncertainty.to_json()) == uncertainty
    for uncertainty, _ in UNSAVEABLE:
        with pytest.raises(TypeError, match="cannot be saved"):
            uncertainty.to_json()


def test_a_deep_copy_is_equal_also_of_what_holds_a_function():
    varying = unc.Varying(functools.partial(stretched_normal, 0.1))
    for uncertainty in (varying, unc.Product([varying, unc.Ring(0.1)]), unc.Normal(0.1)):
        assert copy.deepcopy(uncertainty) == uncertainty
        assert copy.deepcopy([uncertainty]) == [uncertainty]


def stretched_normal(share, x):
    return unc.Normal(share * x.abs())


def test_all_examples_differ():
    kinds = [uncertainty for uncertainty, _ in ALL_UNCERTAINTIES]
    assert len(set(kinds)) == len(kinds)
    assert {type(u).__name__ for u in kinds} == set(unc.__all__) - {
        "InputUncertainty", "base_draws", "conditional", "from_dict", "from_json", "learn",
    }  # fmt: skip


@settings(max_examples=60)
@given(data=st.data(), d=st.integers(1, 3))
def test_any_uncertainty_survives_json_and_has_a_proper_covariance(data, d):
    uncertainty, X = data.draw(uncertainties(d)), data.draw(designs(d))
    assert unc.from_json(uncertainty.to_json()) == uncertainty
    assert torch.isfinite(uncertainty.perturb(X, draws_for(uncertainty, d))).all()
    C = uncertainty.covariance(X)
    torch.testing.assert_close(C, C.mT)
    assert (torch.linalg.eigvalsh(C) >= -1e-9 * (1 + C.abs().max())).all()


@settings(max_examples=40)
@given(data=st.data(), d=st.integers(1, 3))
def test_samples_do_not_depend_on_the_other_designs_or_samples(data, d):
    uncertainty, X = data.draw(uncertainties(d)), data.draw(designs(d))
    base = draws_for(uncertainty, d)
    samples = uncertainty.perturb(X, base)
    torch.testing.assert_close(uncertainty.perturb(X.flip(0), base).flip(0), samples)
    torch.testing.assert_close(uncertainty.perturb(X, base.flip(0)).flip(-2), samples)


def test_a_mixture_that_moves_with_the_design_is_its_own_gaussians():
    def fn(x):
        return unc.GaussianMixture(torch.stack([x, -x], dim=-2), [[0.01]], [0.3, 0.7])

    X = some_designs(3, 1)
    (part,) = unc.Varying(fn).landing(X, Resolution(8))
    torch.testing.assert_close(part.means, torch.stack([2 * X, 0 * X], dim=-2))
    torch.testing.assert_close(part.weights, torch.tensor([0.3, 0.7]).double().expand(3, 2))
