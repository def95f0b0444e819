"""Distributions on a line, spread over a shared grid."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.embeddings import RationalQuadraticSum
from airbo.embeddings.grid import GridEmbedding
from airbo.embeddings.mixtures import ComponentEmbedding
from tests.uncertainties import bending_beta, wavy_beta

STEP = unc.Piecewise([0.6], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7.0, scale=0.01)])
VARYING = [unc.Varying(wavy_beta), unc.Varying(bending_beta), STEP]
BOX = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


def embed(uncertainty, kind, lengthscale=0.1):
    kernel = RationalQuadraticSum(lengthscale).double()
    return kind(36, [uncertainty], kernel, BOX).eval()


@pytest.mark.parametrize("uncertainty", VARYING, ids=["wavy beta", "bending beta", "steps"])
@pytest.mark.parametrize("lengthscale", [0.05, 0.3])
def test_the_grid_says_the_same_as_components(uncertainty, lengthscale):
    X = torch.linspace(0, 1, 9).double().unsqueeze(-1)
    with torch.no_grad():
        grid, components = (
            e.inner(e(X), e(X))
            for e in (
                embed(uncertainty, k, lengthscale) for k in (GridEmbedding, ComponentEmbedding)
            )
        )
    torch.testing.assert_close(grid, components, atol=5e-4, rtol=0)


def test_weights_of_the_grid_add_up_to_one_and_have_the_mean_of_the_distribution():
    uncertainty = unc.Varying(wavy_beta)
    embedding = embed(uncertainty, GridEmbedding)
    X = torch.rand(50, 1, generator=torch.Generator().manual_seed(0)).double()
    weights, Z = embedding(X), embedding._grid()
    torch.testing.assert_close(weights.sum(-1), torch.ones(50).double())
    torch.testing.assert_close(weights @ Z, uncertainty.mean(X).squeeze(-1), atol=1e-4, rtol=0)


def test_a_design_far_off_does_not_change_what_is_known_of_the_others():
    embedding = embed(unc.Varying(wavy_beta), GridEmbedding)
    X = torch.linspace(0, 1, 5).double().unsqueeze(-1)
    before, version = embedding.inner(embedding(X), embedding(X)), embedding.version
    far = embedding(torch.tensor([[30.0]]).double())
    assert embedding.version > version
    after = embedding.inner(embedding(X), embedding(X))
    torch.testing.assert_close(before, after)
    assert bool((embedding.inner(embedding(X), far) < before.min()).all())


def test_gradients_reach_the_designs():
    embedding = embed(unc.Varying(wavy_beta), GridEmbedding)
    known = embedding(torch.tensor([[0.2], [0.7]]).double()).detach()
    X = torch.tensor([[0.33], [0.5123]]).double().requires_grad_()
    torch.autograd.gradcheck(lambda X: embedding.inner(embedding(X), known), (X,), atol=1e-4)
