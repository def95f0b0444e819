import math

import pytest
import torch

from airbo import Float, Integer, Space
from airbo import uncertainty as unc
from airbo.embeddings import Empirical, Nystrom, Quadrature, default_base_kernel
from airbo.space.cube import Cube
from airbo.uncertainty.in_cube import InCube, by_columns, in_cube

MIXED = Space(
    {"x": (10.0, 30.0), "t": ["A", "B", "C"], "d": Float(0.01, 1.0, log=True), "n": Integer(1, 5)}
)
CUBE = Cube(MIXED)
X = CUBE.columns([{"x": 15, "t": "B", "d": 0.1, "n": 3}, {"x": 30, "t": "A", "d": 1.0, "n": 1}])


def base(uncertainty, n=64, d=6):
    return unc.base_draws(n, uncertainty.n_base(d))


THREE = Space({"x": (10.0, 30.0), "y": (-1.0, 4.0), "d": Float(0.1, 1.0, log=True)})
PAIR, LOG = ("x", "y"), unc.Uniform(-0.05, 0.1)
GIVEN = [
    {"x": unc.Normal(2.0), "d": LOG},
    {"x": unc.Normal(2.0).clipped(12.0, 29.0), "y": unc.Beta(0.4, 0.2, scale=0.1).scaled(2.0)},
    {PAIR: unc.Normal([2.0, 0.3]), "d": LOG.clipped(low=0.06)},
    {PAIR: unc.Normal(cov=[[4.0, 0.5], [0.5, 0.1]])},
    {PAIR: unc.GaussianMixture([[1.0, 0.0], [-1.0, 0.2]], [[0.2, 0.0], [0.0, 0.1]])},
    {PAIR: unc.Empirical([[1.0, 0.1], [-2.0, 0.0], [0.5, 0.3]])},
    {PAIR: unc.Ring(0.5)},
    {PAIR: unc.Piecewise([15.0], [unc.Normal(1.0), unc.Uniform([-1.0, 0.0], [1.0, 0.5])])},
    {PAIR: unc.Varying(lambda x: unc.Normal(0.02 * x.abs())), "d": unc.ChiSquared(2.0, scale=0.01)},
    {("x", "y", "d"): unc.Uniform([-1.0, -0.5, 0.0], [1.0, 0.5, 0.1])},
    {("y", "d"): unc.Ring(0.05), "x": unc.Product([unc.Normal(1.0)])},
    unc.Uniform(-0.05, 0.05),
]


@pytest.mark.parametrize("given", GIVEN, ids=repr)
def test_samples_in_the_cube_are_samples_over_columns_translated(given):
    P, cube = by_columns(THREE, given), Cube(THREE)
    X = cube.columns([{"x": 11, "y": 0.0, "d": 0.2}, {"x": 28.0, "y": 3.5, "d": 0.9}])
    draws = unc.base_draws(64, P.n_base(3))
    samples = in_cube(THREE, P).perturb(cube.from_columns(X), draws)
    torch.testing.assert_close(samples, cube.from_columns(P.perturb(X, draws)))


@pytest.mark.parametrize("given", GIVEN, ids=repr)
def test_what_is_equal_over_columns_is_equal_in_the_cube(given):
    P, Q = by_columns(THREE, given), by_columns(THREE, given)
    in_cube.cache_clear()
    first = in_cube(THREE, P)
    in_cube.cache_clear()
    assert first == in_cube(THREE, Q)
    assert hash(first) == hash(in_cube(THREE, Q))
    assert first != in_cube(THREE, unc.Exact())


def test_every_column_that_deviates_by_itself_is_a_block_in_its_own_units():
    Q = in_cube(THREE, by_columns(THREE, unc.Uniform([-1.0, -0.5, 0.0], [1.0, 0.5, 0.1])))
    assert Q.columns == ((0,), (1,), (2,))
    assert all(isinstance(block, InCube) for block in Q.blocks)
    assert Q.blocks[2].uncertainty == unc.Uniform([0.0], [0.1])


def test_what_is_hit_exactly_stays_exact_in_the_cube():
    P = by_columns(MIXED, {"d": unc.Uniform(0.0, 0.1), ("n", "x"): unc.Normal([0.4, 2.0])})
    Q = in_cube(MIXED, P)
    kinds = {columns: type(block) for block, columns in zip(Q.blocks, Q.columns, strict=True)}
    assert kinds == {(4,): InCube, (5,): InCube, (0,): InCube, (1, 2, 3): unc.Exact}


def test_uncertainty_is_in_the_units_of_the_user():
    metres, millimetres = Space({"x": (0, 2), "y": (0, 1)}), Space({"x": (0, 2000), "y": (0, 1)})
    P = in_cube(metres, by_columns(metres, {"x": unc.Normal(0.1)}))
    Q = in_cube(millimetres, by_columns(millimetres, {"x": unc.Normal(100.0)}))
    Z = torch.tensor([[0.2, 0.3]], dtype=torch.float64)
    draws = unc.base_draws(32, 2)
    torch.testing.assert_close(P.perturb(Z, draws), Q.perturb(Z, draws))
    torch.testing.assert_close(P.covariance(Z), Q.covariance(Z))
    assert P.covariance(Z)[0, 0, 0].sqrt().item() == pytest.approx(0.05)


def test_moments_in_the_cube_are_those_of_the_samples():
    P = in_cube(MIXED, by_columns(MIXED, {"x": unc.Normal(2.0), "n": unc.Uniform(0.0, 1.0)}))
    Z = CUBE.from_columns(X)
    samples = P.perturb(Z, base(P, 4096))
    torch.testing.assert_close(P.mean(Z), samples.mean(-2), atol=2e-3, rtol=0)
    centred = samples - samples.mean(-2, keepdim=True)
    torch.testing.assert_close(P.covariance(Z), centred.mT @ centred / 4096, atol=1e-3, rtol=0)


def test_a_logarithmic_scale_bends_a_shift_into_something_that_changes_with_the_design():
    shift = by_columns(MIXED, {"d": unc.Uniform(0.0, 0.1)})
    assert shift.is_additive
    assert not in_cube(MIXED, shift).is_additive
    assert in_cube(MIXED, by_columns(MIXED, {"x": unc.Normal(1.0)})).is_additive
    covariance = in_cube(MIXED, shift).covariance(CUBE.from_columns(X))[:, 4, 4]
    assert covariance[0] > 10 * covariance[1]
    assert math.sqrt(covariance[0]) < 0.1


@pytest.mark.parametrize(
    "estimator", [Quadrature(), Empirical(200), Nystrom(200, 20)], ids=lambda e: type(e).__name__
)
def test_a_category_is_the_same_under_uncertainties_of_all_kinds(estimator):
    space = Space({"x": (0.0, 1.0), "tool": ["A", "B", "C"]})
    P = by_columns(space, {"x": unc.Normal(0.05)})
    wide = by_columns(space, {"x": unc.Normal(0.05).clipped(-9.0, 9.0)})  # the same, not additive
    both = [in_cube(space, u) for u in (P, wide)]
    d = Cube(space).m
    bounds = torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.float64)
    embedding = estimator.embed(both, default_base_kernel(d).double(), bounds).eval()
    X = Cube(space).from_designs([{"x": 0.4, "tool": tool} for tool in "ABC"])
    numbers = torch.arange(2, dtype=torch.float64)[:, None].expand(2, 3)
    f = embedding(torch.cat([X.expand(2, -1, -1), numbers.unsqueeze(-1)], dim=-1))
    assert embedding.mmd2(f[0], f[1], diag=True).abs().max() < 1e-6
    assert embedding.mmd2(f[0], f[1])[0, 1] > 0.1
