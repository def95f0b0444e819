"""The corrected spread within P_x: means stay, and observations nearby decide how rough f is."""

import copy
import itertools
from dataclasses import replace

import pytest
import torch

from airbo import uncertainty as unc
from airbo.measures import CVaR
from airbo.measures.posterior import Effort, MeasureModel
from airbo.measures.spread import local_roughness, unknown_share, with_local_spread
from airbo.models import MMDGP, UGP, ExpectationGP, RelevanceGP
from airbo.models.draws import FunctionDraws, Surprises
from tests.surrogates import box, designs, surrogate

P = unc.Normal(0.3)
KINDS = pytest.mark.parametrize(
    "kind", [ExpectationGP, RelevanceGP, UGP, MMDGP], ids=lambda kind: kind.__name__
)


def drawn_at(model, X, n_pairs=16, **kwargs):
    torch.manual_seed(0)
    draws = FunctionDraws(copy.deepcopy(model).eval(), n_pairs, **kwargs)
    return draws(P.perturb(X, unc.base_draws(32, X.shape[-1])))


def plain(drawn):
    return torch.cat([drawn.mean + drawn.deviations, drawn.mean - drawn.deviations])


def half_flat(kind=ExpectationGP, flat=0.0):
    """A model of values that are flat on the left, and jump up and down on the right."""
    X = torch.linspace(-1.9, 1.9, 20, dtype=torch.float64).unsqueeze(-1)
    jumps = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(10)
    Y = torch.where(X.squeeze(-1) < 0, flat, 1.0) * jumps
    return kind(X, Y.unsqueeze(-1), unc.Normal(0.1), box(1))


@KINDS
def test_means_over_the_uncertainty_are_left_alone(kind):
    drawn = drawn_at(surrogate(kind, P, 2, n=9), designs(3, 2))
    torch.testing.assert_close(with_local_spread(drawn).mean(-1), plain(drawn).mean(-1))
    assert not torch.allclose(with_local_spread(drawn), plain(drawn))


def test_a_function_that_is_known_within_the_uncertainty_is_not_touched():
    drawn = drawn_at(surrogate(ExpectationGP, P, 2, n=9), designs(3, 2))
    known = replace(drawn, deviations=1e-6 * drawn.deviations)
    assert (unknown_share(known) < 1e-5).all()
    torch.testing.assert_close(with_local_spread(known), plain(known), rtol=0, atol=1e-4)


@KINDS
def test_f_varies_less_where_neighbours_are_flat_than_where_they_are_rough(kind):
    left = torch.tensor([[-1.0]], dtype=torch.float64)
    flat, rough = (drawn_at(half_flat(kind, jump), left, 64) for jump in (0.0, 1.0))
    assert local_roughness(flat) < 0.8 * local_roughness(rough)
    # the same draws, so only the neighbours differ
    same = replace(flat, near=rough.near)
    assert with_local_spread(flat).std(-1).mean() < 0.9 * with_local_spread(same).std(-1).mean()


def scatter(drawn):
    """Standard deviations within P_x: of draws, with all shapes; and of the naive draws."""
    return with_local_spread(drawn).std(-1), plain(drawn).std(-1)


def informed(drawn, information):
    near = torch.cat([drawn.near[..., :2], torch.full_like(drawn.near[..., 2:], information)], -1)
    return replace(drawn, near=near)


def test_the_more_observations_tell_of_the_scatter_the_less_draws_differ_in_it():
    drawn = drawn_at(surrogate(ExpectationGP, P, 2, n=9), designs(3, 2), 64)
    drawn = replace(drawn, deviations=drawn.prior, mean=0 * drawn.mean)  # nothing is known of f
    spreads = [scatter(informed(drawn, w))[0].log().std(0) for w in (0.0, 1.0, 10.0, 1000.0)]
    assert all((more < less).all() for less, more in itertools.pairwise(spreads))
    # with information I, log s has the standard deviation 1 / √I
    torch.testing.assert_close(
        spreads[-1], torch.full_like(spreads[-1], 2000**-0.5), rtol=0.2, atol=0
    )


def test_what_observations_tell_of_the_scatter_leaves_its_size_as_the_model_says():
    drawn = drawn_at(surrogate(ExpectationGP, P, 2, n=9), designs(3, 2), 64)
    drawn = replace(drawn, deviations=drawn.prior, mean=0 * drawn.mean)
    found, naive = scatter(informed(drawn, 1e6))
    expected = local_roughness(drawn) * naive.square().mean(0).sqrt()
    torch.testing.assert_close(found, expected.expand_as(found), rtol=0.01, atol=0)


def test_observations_that_were_executed_exactly_tell_nothing_of_the_scatter():
    model = surrogate(ExpectationGP, unc.Exact(), 2, n=9)
    near = drawn_at(model, designs(3, 2)).near
    assert (near[..., 2] < 1e-6).all()
    assert (near[..., 0] > 1e-3).any()


def test_far_from_all_observations_f_is_as_rough_as_the_model_says():
    model = half_flat()
    far = torch.tensor([[40.0]], dtype=torch.float64)
    assert local_roughness(drawn_at(model, far)).item() == pytest.approx(1.0, abs=1e-4)


def test_surprises_are_errors_of_predictions_from_all_other_observations():
    torch.manual_seed(0)
    B, errors = torch.randn(6, 9, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    A = B @ B.mT
    z, V = [], []
    for j in range(6):
        others = [i for i in range(6) if i != j]
        weights = torch.linalg.solve(A[others][:, others], A[others, j])
        V.append(A[j, j] - weights @ A[others, j])
        z.append((errors[j] - weights @ errors[others]) / V[j].sqrt())
    z, unseen = torch.stack(z).abs(), torch.arange(6.0, dtype=torch.float64)
    found = Surprises.of(torch.linalg.cholesky(A), errors, A.diagonal(), unseen)
    torch.testing.assert_close(found.sizes, z / z.mean())
    torch.testing.assert_close(found.information, (unseen / torch.stack(V)).square())


def test_values_that_surprise_nobody_leave_the_roughness_at_one():
    flat = Surprises.of(torch.eye(3), torch.zeros(3), torch.ones(3), torch.zeros(3))
    assert torch.equal(flat.sizes, torch.ones(3))


def test_values_that_are_only_believed_say_nothing_about_roughness():
    model, X = half_flat().eval(), torch.tensor([[1.0]], dtype=torch.float64)
    pending = torch.tensor([[0.9], [1.1]], dtype=torch.float64)
    measured = MeasureModel(model, CVaR(0.8), P, effort=Effort(8, 8))
    once = measured.with_pending(pending)
    for with_pending in (once, once.with_pending(pending)):
        near = [m._draws(P.perturb(X, m._base)).near for m in (measured, with_pending)]
        torch.testing.assert_close(near[0], near[1])


@KINDS
def test_gradients_of_corrected_values_are_finite(kind):
    model = surrogate(kind, P, 2, n=9)
    X = torch.cat([designs(3, 2), model.train_inputs[0][:1, :2]]).requires_grad_(True)
    with_local_spread(drawn_at(model, X)).std(-1).sum().backward()
    assert torch.isfinite(X.grad).all()


def test_one_design_by_its_executed_inputs_has_the_same_values():
    torch.manual_seed(0)
    measured = MeasureModel(surrogate(ExpectationGP, P, 2, n=9).eval(), CVaR(0.8), P)
    X = designs(1, 2)
    executed = P.perturb(X, measured._base)[0]
    further = torch.cat([executed, designs(5, 2)])
    found = measured.at_executed(further, len(executed), torch.zeros(len(further)))
    torch.testing.assert_close(found[:, : len(executed)], measured.values(X)[:, 0])
