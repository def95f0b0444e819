"""All surrogates and small data sets for them."""

import pytest
import torch

from airbo import uncertainty as unc
from airbo.models import (
    ERBFGP,
    MMDGP,
    SKLGP,
    UGP,
    ExpectationGP,
    NominalGP,
    RelevanceGP,
)

ALL_SURROGATES = [MMDGP, UGP, ExpectationGP, SKLGP, ERBFGP, NominalGP]
OFTEN = [MMDGP, ExpectationGP, SKLGP]
"""Every way in which a surrogate differs from the others; the rest of them is tested in the slow
tier. UGP has the kernel of ExpectationGP and the likelihood of MMDGP."""
SELDOM = [UGP, RelevanceGP, ERBFGP, NominalGP]


def case(kind, *others):
    """Parameters of a test; it is slow for surrogates that are tested seldom."""
    return pytest.param(kind, *others, marks=() if kind in OFTEN else pytest.mark.slow)


every_surrogate = pytest.mark.parametrize(
    "kind", [case(kind) for kind in OFTEN + SELDOM], ids=lambda kind: kind.__name__
)

SAMPLE_KINDS = [
    (unc.Normal(0.1), 1),
    (unc.Beta(0.4, 0.2, scale=0.1), 1),
    (unc.Normal(cov=[[0.02, 0.01], [0.01, 0.02]]), 2),
    (unc.Varying(lambda x: unc.Normal(0.05 + 0.1 * x**2)), 2),
]
"""One uncertainty per way in which features are made."""

SURROGATES_AND_WAYS = [(ExpectationGP, u, d) for u, d in SAMPLE_KINDS]
SURROGATES_AND_WAYS += [
    (kind, u, d) for kind in (UGP, MMDGP, SKLGP, ERBFGP) for u, d in SAMPLE_KINDS[1::2]
]
SURROGATES_AND_WAYS += [(NominalGP, *SAMPLE_KINDS[0])]  # it does not look at the uncertainty
SURROGATES_AND_WAYS = [case(*each) for each in SURROGATES_AND_WAYS]
"""Every way for one surrogate; for the others an additive uncertainty and one that varies."""


def box(d, low=-2.0, high=2.0):
    return torch.tensor([[low] * d, [high] * d], dtype=torch.float64)


def designs(n, d, seed=0, low=-2.0, high=2.0):
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(n, d, generator=generator, dtype=torch.float64)


def values(X):
    return (1.7 * X).sin().sum(-1, keepdim=True) + 0.3 * X.square().sum(-1, keepdim=True)


def surrogate(kind, uncertainty, d, n=7, seed=0, **kwargs):
    X = designs(n, d, seed)
    return kind(X, values(X), uncertainty, kwargs.pop("bounds", box(d)), **kwargs)


def gram(model, X, Z=None):
    """Covariance of expected values at designs, with the output scale."""
    f = model.features(X)
    g = None if Z is None else model.features(Z)
    return model.covar_module(f, g).to_dense()


def moments(model, X, **kwargs):
    posterior = model.posterior(X, **kwargs)
    return posterior.mean, posterior.distribution.covariance_matrix


def set_hyperparameters(model, seed=0, spread=0.3):
    """Move every hyper-parameter away from where it started, positive ones by about e^spread."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, parameter, constraint in model.named_parameters_and_constraints():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            change = spread * noise.to(parameter)
            if constraint is None:
                parameter.add_(change)
            else:
                value = constraint.transform(parameter) * change.exp()
                parameter.copy_(constraint.inverse_transform(value))
    return model
