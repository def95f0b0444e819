"""Laws that every input uncertainty keeps."""

import copy
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.uncertainty.base import _moment_draws
from tests.strategies import designs, uncertainties
from tests.uncertainties import ALL_UNCERTAINTIES, SAVEABLE, UNSAVEABLE, one_of_each_type

every_uncertainty = pytest.mark.parametrize(("uncertainty", "d"), ALL_UNCERTAINTIES, ids=repr)
every_class = pytest.mark.parametrize(
    ("uncertainty", "d"), one_of_each_type(ALL_UNCERTAINTIES), ids=repr
)


def some_designs(*shape):
    generator = torch.Generator().manual_seed(1)
    return torch.rand(*shape, generator=generator, dtype=torch.float64) * 2 - 1


def draws_for(uncertainty, d, n_samples=16, seed=0):
    return unc.base_draws(n_samples, uncertainty.n_base(d), seed)


@every_uncertainty
def test_samples_have_the_shape_and_type_of_the_designs(uncertainty, d):
    for dtype in (torch.float64, torch.float32):
        X = some_designs(2, 3, d).to(dtype)
        samples = uncertainty.perturb(X, draws_for(uncertainty, d))
        assert samples.shape == (2, 3, 16, d)
        assert samples.dtype == dtype
        assert torch.isfinite(samples).all()
        assert uncertainty.mean(X).shape == (2, 3, d)
        assert uncertainty.covariance(X).shape == (2, 3, d, d)
        assert uncertainty.mean(X).dtype == uncertainty.covariance(X).dtype == dtype


@every_uncertainty
def test_a_batch_equals_a_loop_over_designs(uncertainty, d):
    X, base = some_designs(2, 3, d), draws_for(uncertainty, d)
    one_by_one = [X[i, j : j + 1] for i in range(2) for j in range(3)]
    for compute in (
        lambda x: uncertainty.perturb(x, base),
        uncertainty.mean,
        uncertainty.covariance,
    ):
        looped = torch.stack([compute(x).squeeze(0) for x in one_by_one])
        torch.testing.assert_close(compute(X).flatten(0, 1), looped)


@every_uncertainty
def test_same_draws_give_same_samples_and_global_generators_stay_untouched(uncertainty, d):
    X, base = some_designs(3, d), draws_for(uncertainty, d)
    first = uncertainty.perturb(X, base)
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    second = uncertainty.perturb(X, base.clone())
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


@every_uncertainty
def test_other_draws_give_other_samples(uncertainty, d):
    X = some_designs(8, d)
    one, other = (uncertainty.perturb(X, draws_for(uncertainty, d, seed=s)) for s in (0, 1))
    assert torch.equal(one, other) == (uncertainty == unc.Exact())


@every_uncertainty
def test_gradients_equal_finite_differences(uncertainty, d):
    X = some_designs(3, d).requires_grad_()
    base = draws_for(uncertainty, d, n_samples=8)
    assert torch.autograd.gradcheck(lambda x: uncertainty.perturb(x, base), X, atol=1e-5)


@pytest.mark.parametrize(
    ("uncertainty", "d"),
    [pair for pair in ALL_UNCERTAINTIES if not isinstance(pair[0], unc.Sampler | unc.Clipped)],
    ids=repr,
)
def test_moments_have_the_gradients_of_finite_differences(uncertainty, d):
    X = some_designs(2, d).requires_grad_()
    assert torch.autograd.gradcheck(uncertainty.mean, X)
    assert torch.autograd.gradcheck(
        lambda x: uncertainty.covariance(x) + 0 * x.sum(), X
    )  # the covariance of an additive one has no graph of its own


@every_uncertainty
def test_use_under_inference_mode_leaves_later_gradients_intact(uncertainty, d):
    fresh = copy.deepcopy(uncertainty)
    _moment_draws.cache_clear()
    X, base = some_designs(2, d), draws_for(uncertainty, d)
    with torch.inference_mode():
        fresh.perturb(X, base), fresh.mean(X), fresh.covariance(X)
    X.requires_grad_()
    total = fresh.perturb(X, base).square().sum() + fresh.mean(X).square().sum()
    (gradient,) = torch.autograd.grad(total, X)
    assert torch.isfinite(gradient).all()


@every_uncertainty
def test_mean_and_covariance_are_those_of_the_samples(uncertainty, d):
    n = 2**14
    X = some_designs(3, d)
    samples = uncertainty.perturb(X, draws_for(uncertainty, d, n, seed=3))
    centred = samples - samples.mean(dim=-2, keepdim=True)
    products = centred.unsqueeze(-1) * centred.unsqueeze(-2)  # (3, n, d, d)

    # five standard errors, of n draws here and of 4,096 where there is no closed form
    error = 5 * math.sqrt(1 / n + 1 / 4096)
    away = (uncertainty.mean(X) - samples.mean(dim=-2)).abs()
    assert (away <= error * samples.std(dim=-2) + 1e-12).all()
    away = (uncertainty.covariance(X) - products.mean(dim=-3)).abs()
    assert (away <= error * products.std(dim=-3) + 1e-12).all()


@pytest.mark.parametrize(
    ("uncertainty", "d"), [pair for pair in ALL_UNCERTAINTIES if pair[0].is_additive], ids=repr
)
def test_additive_samples_move_with_the_design(uncertainty, d):
    X, shift, base = some_designs(3, d), some_designs(d) * 3, draws_for(uncertainty, d)
    moved = uncertainty.perturb(X + shift, base)
    torch.testing.assert_close(moved, uncertainty.perturb(X, base) + shift)


@pytest.mark.parametrize(
    ("uncertainty", "d"), [p for p in ALL_UNCERTAINTIES if not p[0].is_additive], ids=repr
)
def test_deviations_of_the_others_depend_on_the_design(uncertainty, d):
    X, base = some_designs(9, d), draws_for(uncertainty, d)
    deviations = uncertainty.perturb(X, base) - X.unsqueeze(-2)
    assert not torch.allclose(deviations, deviations[:1].expand_as(deviations))


@pytest.mark.parametrize(
    ("uncertainty", "d"), [p for p in ALL_UNCERTAINTIES if p[0].independent_columns], ids=repr
)
def test_an_independent_column_uses_its_own_base_numbers_only(uncertainty, d):
    X, base = some_designs(3, d), draws_for(uncertainty, d)
    assert base.shape[1] in (0, d)
    samples = uncertainty.perturb(X, base)
    for j in range(base.shape[1]):
        other = 1 - base
        other[:, j] = base[:, j]
        torch.testing.assert_close(uncertainty.perturb(X, other)[..., j], samples[..., j])


@pytest.mark.parametrize(("uncertainty", "d"), SAVEABLE, ids=repr)
def test_json_gives_back_the_same_uncertainty(uncertainty, d):
    again = unc.from_json(uncertainty.to_json())
    assert again == uncertainty
    assert hash(again) == hash(uncertainty)
    X, base = some_designs(3, d), draws_for(uncertainty, d)
    assert torch.equal(again.perturb(X, base), uncertainty.perturb(X, base))


def test_a_deep_copy_is_equal_also_of_what_holds_a_function():
    varying = unc.Varying(functools.partial(stretched_normal, 0.1))
    for uncertainty in (varying, unc.Product([varying, unc.Ring(0.1)]), unc.Normal(0.1)):
        assert copy.deepcopy(uncertainty) == uncertainty
        assert copy.deepcopy([uncertainty]) == [uncertainty]


def stretched_normal(share, x):
    return unc.Normal(share * x.abs())


@pytest.mark.parametrize(("uncertainty", "d"), UNSAVEABLE, ids=repr)
def test_what_cannot_be_saved_says_so(uncertainty, d):
    with pytest.raises(TypeError, match="cannot be saved"):
        uncertainty.to_json()


def test_all_examples_differ():
    kinds = [uncertainty for uncertainty, _ in ALL_UNCERTAINTIES]
    assert len(set(kinds)) == len(kinds)
    assert {type(u).__name__ for u in kinds} == set(unc.__all__) - {
        "InputUncertainty", "base_draws", "conditional", "from_dict", "from_json", "learn",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("uncertainty", "d"), [p for p in ALL_UNCERTAINTIES if p[0].dim is not None], ids=repr
)
def test_designs_with_another_number_of_columns_are_refused(uncertainty, d):
    assert uncertainty.dim == d
    for act in (
        lambda X: uncertainty.perturb(X, unc.base_draws(4, 20)), uncertainty.mean,
        uncertainty.covariance,
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{d} columns, got {d + 1}|column"):
            act(some_designs(3, d + 1))


@every_class
def test_too_few_base_numbers_are_refused(uncertainty, d):
    needed = uncertainty.n_base(d)
    if needed:
        with pytest.raises(ValueError, match=f"needs {needed} base numbers per sample"):
            uncertainty.perturb(some_designs(3, d), unc.base_draws(4, needed - 1))


@every_class
def test_superfluous_base_numbers_are_ignored(uncertainty, d):
    X, base = some_designs(3, d), draws_for(uncertainty, d)
    more = torch.cat([base, torch.rand(16, 2).double()], dim=1)
    assert torch.equal(uncertainty.perturb(X, more), uncertainty.perturb(X, base))


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
