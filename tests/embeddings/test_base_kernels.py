"""Base kernels say what their formulas say, and so do their derivatives."""

import pytest
import torch

from airbo.embeddings import RationalQuadraticSum

EXPONENTS = torch.tensor([0.2, 0.5, 1.0, 2.0, 5.0], dtype=torch.float64)


@pytest.fixture(params=[False, True], ids=["five length scales", "one length scale"])
def kernel(request):
    return RationalQuadraticSum(0.3, shared=request.param).double()


def by_formula(kernel, U, V):
    r2 = (U.unsqueeze(-2) - V.unsqueeze(-3)).square().sum(-1).unsqueeze(-1)
    a, scales = EXPONENTS, kernel.lengthscales
    return ((1 + r2 / (2 * a * scales**2)) ** -a).sum(-1)


def points(*shape):
    generator = torch.Generator().manual_seed(len(shape))
    return torch.rand(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("shape", [(4, 2), (3, 4, 2)])
def test_values_and_derivatives_are_those_of_the_formula(kernel, shape):
    U, V = points(*shape), points(5, 2)
    inputs = (U, V, kernel.raw_lengthscales)
    ours, theirs = kernel(U, V).to_dense(), by_formula(kernel, U, V)
    torch.testing.assert_close(ours, theirs)
    weights = torch.linspace(-1, 1, theirs.numel(), dtype=torch.float64).reshape(theirs.shape)
    for a, b in zip(
        torch.autograd.grad((ours * weights).sum(), inputs),
        torch.autograd.grad((theirs * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("wanted", ["points", "length scales", "nothing"])
def test_values_do_not_depend_on_which_derivatives_are_wanted(kernel, wanted):
    U, V = (points(n, 3).requires_grad_(wanted == "points") for n in (4, 5))
    kernel.requires_grad_(wanted == "length scales")
    K = kernel(U, V).to_dense()
    assert K.requires_grad == (wanted != "nothing")
    torch.testing.assert_close(K, by_formula(kernel, U, V))


def test_matching_points_are_the_diagonal_of_all_pairs(kernel):
    U, V = points(4, 3), points(4, 3)
    torch.testing.assert_close(kernel(U, V, diag=True), kernel(U, V).to_dense().diagonal())
