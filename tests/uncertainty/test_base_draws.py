import pytest
import torch

from airbo import uncertainty as unc


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_base", [0, 1, 20])
def test_base_draws_lie_strictly_inside_the_unit_interval(n_base, dtype):
    u = unc.base_draws(2**12, n_base, dtype=dtype)
    assert u.shape == (2**12, n_base)
    assert u.dtype == dtype
    assert ((u > 0) & (u < 1)).all()


def test_base_draws_are_the_middles_of_the_cells_of_the_sobol_grid():
    assert (unc.base_draws(256, 3) * 2**30 % 1 == 0.5).all()


def test_same_seed_gives_same_draws_and_the_global_generator_stays_untouched():
    before = torch.get_rng_state()
    first = unc.base_draws(64, 3, seed=1)
    torch.manual_seed(7)
    assert torch.equal(first, unc.base_draws(64, 3, seed=1))
    assert not torch.equal(first, unc.base_draws(64, 3, seed=2))
    torch.set_rng_state(before)
    unc.base_draws(64, 3)
    assert torch.equal(before, torch.get_rng_state())


def test_base_draws_are_more_even_than_random_numbers():
    u = unc.base_draws(1024, 4)
    assert (u.mean(dim=0) - 0.5).abs().max() < 1e-3  # random numbers: about 0.01
    for j in range(4):
        assert torch.bincount((u[:, j] * 64).long(), minlength=64).tolist() == [16] * 64


@pytest.mark.parametrize(("n_samples", "n_base"), [(0, 2), (4, -1)])
def test_impossible_numbers_of_draws_are_refused(n_samples, n_base):
    with pytest.raises(ValueError, match="n_samples >= 1 and n_base >= 0"):
        unc.base_draws(n_samples, n_base)


def test_numbers_at_the_ends_of_the_unit_interval_give_finite_samples():
    X = torch.zeros(1, 1)
    ends = torch.tensor([[0.0], [1.0], [1 - 1e-12]], dtype=torch.float64)
    assert torch.isfinite(unc.Normal(1.0).perturb(X, ends)).all()
    assert torch.isfinite(unc.ChiSquared(1.0).perturb(X, ends)).all()
