"""The posterior of f itself, together with that of its expected values."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.models import UGP, ExpectationGP
from tests.surrogates import box, designs, set_hyperparameters, values

N = 256
WAYS = {
    "normal": unc.Normal(0.4),
    "beta": unc.Beta(0.4, 0.2, scale=0.9),
    "dependent": unc.Normal(cov=[[0.2, 0.1], [0.1, 0.2]]),
    "ring": unc.Ring(0.6),
    "percent": unc.Relative(unc.Uniform(-0.2, 0.2)),
    "varying": unc.Varying(lambda x: unc.Normal(0.2 + 0.1 * x**2)),
}


def samples(P, X, seed):
    return P.perturb(X, unc.base_draws(N, max(1, P.n_base(2)), seed=seed)).detach()


@pytest.mark.parametrize(
    ("kind", "P"),
    [*((ExpectationGP, P) for P in WAYS.values()), (UGP, WAYS["normal"]), (UGP, WAYS["varying"])],
    ids=repr,
)
def test_the_joint_posterior_of_f_and_its_expected_values_equals_brute_force(kind, P):
    X, E, Q = designs(5, 2), designs(2, 2, seed=1), designs(2, 2, seed=2)
    model = set_hyperparameters(kind(X, values(X), P, box(2), outcome_transform=None)).eval()
    posterior = model.posterior(torch.cat([E, Q]), uncertainty=[P] * 2 + [unc.Exact()] * 2)

    # all points at which f counts: samples of the observations, samples of E, and Q itself
    k, s = model.features.base_kernel, model.covar_module.outputscale
    at_zero = k(X[:1]).to_dense().item()
    sets = [*samples(P, X, 1), *samples(P, E, 2), *Q.unsqueeze(-2)]
    others = [*samples(P, X, 3), *samples(P, E, 4), *Q.unsqueeze(-2)]  # independent of the first
    cube = [[(z + 2) / 4 for z in some] for some in (sets, others)]
    with torch.no_grad():
        K = s * torch.stack(
            [torch.stack([k(u, v).to_dense().mean() for v in cube[1]]) for u in cube[0]]
        )
        K = (K + K.mT) / 2
        n, mean = len(X), model.mean_module(X[:1])
        noise = model.likelihood.noise.expand(n)
        if kind is ExpectationGP:
            noise = noise + at_zero * s - K.diagonal()[:n]  # what the unseen executed input adds
        solved = torch.linalg.solve(K[:n, :n] + noise.diag(), K[:n, n:])
        expected_mean = mean + solved.mT @ (values(X).squeeze(-1) - mean)
        expected = K[n:, n:] - K[n:, :n] @ solved
    size = s.item() * at_zero
    torch.testing.assert_close(posterior.mean.squeeze(-1), expected_mean, atol=0.02, rtol=0.02)
    covariance = posterior.distribution.covariance_matrix
    torch.testing.assert_close(covariance, expected, atol=5e-3 * size, rtol=0)
    assert expected[:2, 2:].abs().max() > 0.02 * size  # there is something to compare
