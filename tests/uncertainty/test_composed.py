"""Products, steps, functions of the design and black boxes."""

import pytest
import torch

from airbo import uncertainty as unc


def some_designs(*shape):
    generator = torch.Generator().manual_seed(1)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("product", "d", "layout"),
    [
        (unc.Product([unc.Ring(1), unc.Normal(0.1)]), 10, (tuple(range(2)), tuple(range(2, 10)))),
        (unc.Product([unc.Normal(0.1), unc.Ring(1)]), 3, ((0,), (1, 2))),
        (unc.Product([unc.Normal(0.1), unc.Exact()]), 2, ((0,), (1,))),
        (unc.Product([unc.Normal([1, 2]), unc.Normal([3])]), 3, ((0, 1), (2,))),
        (unc.Product([unc.Ring(1), unc.Exact()], [(2, 0), (1,)]), 3, ((2, 0), (1,))),
    ],
)
def test_blocks_share_out_the_columns(product, d, layout):
    assert product.layout(d) == layout
    product.check_dim(d)


@pytest.mark.parametrize(
    ("product", "d"),
    [
        (unc.Product([unc.Normal(0.1), unc.Exact()]), 3),
        (unc.Product([unc.Ring(1), unc.Exact()]), 2),
        (unc.Product([unc.Ring(1), unc.Exact()]), 1),
    ],
)
def test_columns_that_cannot_be_shared_out_are_refused(product, d):
    with pytest.raises(ValueError, match=r"columns, got|leaves no column"):
        product.check_dim(d)


def test_each_block_acts_on_its_own_columns():
    ring, normal = unc.Ring(0.5), unc.Normal(0.1)
    X, base = some_designs(3, 4), unc.base_draws(16, 3)
    samples = unc.Product([ring, normal], [(3, 1), (0, 2)]).perturb(X, base)
    torch.testing.assert_close(samples[..., [3, 1]], ring.perturb(X[:, [3, 1]], base[:, :1]))
    torch.testing.assert_close(samples[..., [0, 2]], normal.perturb(X[:, [0, 2]], base[:, 1:]))


def test_a_product_of_one_kind_equals_the_kind_with_vector_parameters():
    X, base = some_designs(3, 3), unc.base_draws(16, 3)
    product = unc.Product([unc.Normal(0.1), unc.Exact(), unc.Normal(0.3)])
    together = unc.Normal([0.1, 0.0, 0.3])
    assert product.independent_columns
    torch.testing.assert_close(product.perturb(X, base), together.perturb(X, base))
    torch.testing.assert_close(product.covariance(X), together.covariance(X))


def test_an_edge_belongs_to_the_piece_on_its_right():
    steps = unc.Piecewise([0.2, 0.6], [unc.Exact(), unc.Normal(1), unc.Normal(2)], column=1)
    column = torch.tensor([0.0, 0.2, 0.3, 0.6, 0.9], dtype=torch.float64)
    X = torch.stack([torch.zeros(5).double(), column], dim=-1)
    assert steps.select(X).tolist() == [0, 1, 1, 2, 2]
    assert steps.covariance(X)[:, 0, 0].tolist() == [0, 1, 1, 4, 4]


def test_chi_squared_of_the_paper_changes_its_degrees_of_freedom_at_the_step():
    steps = unc.Piecewise([0.6], [unc.ChiSquared(g, scale=0.01) for g in (0.5, 7.0)])
    X = torch.tensor([[0.5], [0.6]], dtype=torch.float64)
    torch.testing.assert_close(steps.mean(X) - X, torch.tensor([[0.005], [0.07]]).double())


def test_a_piece_sees_only_its_own_designs():
    def positive_only(x):
        assert (x >= 0).all()
        return unc.Normal(x)

    steps = unc.Piecewise([0.0], [unc.Exact(), unc.Varying(positive_only)])
    X = torch.tensor([[-1.0], [1.0]], dtype=torch.float64).requires_grad_()
    samples = steps.perturb(X, unc.base_draws(8, 1))
    assert torch.equal(samples[0], X[:1].expand(8, 1))
    (gradient,) = torch.autograd.grad(samples.sum(), X)
    assert torch.isfinite(gradient).all()


def test_one_piece_without_edges_is_that_piece():
    only = unc.Piecewise([], [unc.Normal(0.1)])
    assert only.is_additive
    assert unc.from_json(only.to_json()) == only


def test_varying_shows_the_uncertainty_at_given_designs():
    X = some_designs(3, 2)
    at = unc.Varying(lambda x: unc.Normal(0.1 * x)).at(X)
    assert at == unc.Normal(0.1 * X)
    assert at.independent_columns
    assert not at.is_additive


def test_varying_calls_its_function_for_the_number_of_base_draws_only_once():
    seen = []

    def fn(x):
        seen.append(x.tolist())
        return unc.Normal(0.1 * x)

    varying = unc.Varying(fn)
    assert seen == []
    assert varying.n_base(2) == varying.n_base(2) == 2
    assert seen == [[[0.5, 0.5]]]
    assert unc.Varying(fn, probe=[3, 4]).n_base(2) == 2
    assert seen[1] == [[3, 4]]


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: 0.1, "must return an uncertainty, got float"),
        (lambda x: unc.Normal(x.mean(dim=-1)), "failed: Normal acts on designs with 1 col"),
        (lambda x: unc.Normal(x - 1), r"std must be >= 0.*\[\[0.5, 0.5\]\] first.*probe="),
        (lambda x: 1 / 0, "failed: division by zero.* Varying calls it with"),
    ],
)
def test_a_function_that_fails_at_the_probe_is_refused(fn, message):
    with pytest.raises(ValueError, match=message):
        unc.Varying(fn).perturb(some_designs(3, 2), unc.base_draws(4, 2))


@pytest.mark.parametrize(
    "made",
    [
        unc.Normal(torch.ones(4, 2)),
        unc.Normal(cov=torch.eye(2).expand(4, 2, 2)),
        unc.Beta(torch.ones(4, 2), 1.0),
        unc.Ring(torch.ones(4, 1)),
        unc.GaussianMixture(torch.ones(4, 1, 2), torch.eye(2)),
    ],
    ids=repr,
)
def test_parameters_made_for_other_designs_are_refused(made):
    X, base = some_designs(3, 2), unc.base_draws(4, 3)
    message = r"has shape \(4, .*does not fit designs of shape \(3, 2\)"
    for uncertainty in (made, unc.Varying(lambda x: made)):
        with pytest.raises(ValueError, match=message):
            uncertainty.perturb(X, base)


def test_varying_parameters_cannot_be_saved():
    with pytest.raises(TypeError, match=r"Normal\.std is a tensor made from designs"):
        unc.Normal(torch.ones(3, 2)).to_json()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_sampler_that_returns_infinite_values_is_refused(bad):
    sampler = unc.Sampler(lambda X, base: X.unsqueeze(-2) + 0 * base + bad)
    with pytest.raises(ValueError, match="nan or infinite"):
        sampler.perturb(some_designs(3, 2), unc.base_draws(4, 2))


def test_a_sampler_that_returns_the_wrong_shape_is_refused():
    X, base = some_designs(3, 2), unc.base_draws(4, 2)
    with pytest.raises(ValueError, match=r"samples of shape \(3, 4, 2\), got \(3, 2\)"):
        unc.Sampler(lambda X, base: X).perturb(X, base)
    with pytest.raises(TypeError, match="must return a tensor, got float"):
        unc.Sampler(lambda X, base: 1.0).perturb(X, base)


def test_a_sampler_says_how_many_base_numbers_and_columns_it_takes():
    def shift_first(X, base):
        return X.unsqueeze(-2) + base[:, :1]

    sampler = unc.Sampler(shift_first, n_base=1, dim=2, additive=True)
    assert (sampler.n_base(2), sampler.dim, sampler.is_additive) == (1, 2, True)
    assert unc.Sampler(shift_first).n_base(3) == 3
