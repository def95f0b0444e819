"""Other ways to compare uncertain inputs that were tried as the default and rejected."""

import math
from collections.abc import Callable
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings import Empirical
from airbo.models import (
    MMDGP,
    EnergyGP,
    ExpectationGP,
    NominalGP,
    SlicedWassersteinGP,
    UncertainInputGP,
)
from airbo.uncertainty import InputUncertainty
from experiments.subjects.data import fit
from experiments.subjects.internals import (
    lengthscale_prior,
    log_normal,
    observation_noise,
    positive,
)

N_SAMPLES = 24


class ColumnSum(Kernel):
    r"""A sum over columns: MMD² is then a sum, and exp(-α MMD²) a product over columns.

    .. math:: k(x, y) = \sum_j w_j \exp(-\tfrac12 (x_j - y_j)^2 / l_j^2)
    """

    is_stationary = True
    has_lengthscale = True

    def __init__(self, d: int) -> None:
        """Start with the same weight and length scale in all columns."""
        prior = lengthscale_prior(1, spread=math.sqrt(1.5))
        super().__init__(ard_num_dims=d, lengthscale_prior=prior, lengthscale_constraint=positive())
        self.lengthscale = prior.mode
        self.register_parameter("raw_weights", torch.nn.Parameter(torch.zeros(d)))
        self.register_constraint("raw_weights", positive())
        self.register_prior(
            "weights_prior",
            log_normal(1 / math.e, math.sqrt(0.5)),
            lambda m: m.weights,
            lambda m, v: None,
        )
        self.initialize(raw_weights=self.raw_weights_constraint.inverse_transform(torch.ones(d)))

    @property
    def weights(self) -> Float[Tensor, " d"]:
        """The weight of each column."""
        weights: Tensor = self.raw_weights_constraint.transform(self.raw_weights)
        return weights

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate at all pairs of points, or at matching ones."""
        total = torch.zeros(())
        for j, (w, length) in enumerate(zip(self.weights, self.lengthscale[0], strict=True)):
            a, b = x1[..., j] / length, x2[..., j] / length
            apart = a - b if diag else a.unsqueeze(-1) - b.unsqueeze(-2)
            total = total + w * (-0.5 * apart.square()).exp()
        return total


def under(base_kernel: Callable[[int], Kernel]) -> Callable[..., MMDGP]:
    """Return the paper's surrogate with another base kernel, built for ``d`` columns."""

    def build(X: Tensor, Y: Tensor, u: InputUncertainty, bounds: Tensor, seed: int = 0) -> MMDGP:
        return MMDGP(X, Y, u, bounds, Empirical(N_SAMPLES), base_kernel(X.shape[-1]), seed=seed)

    return build


def noisy_input(
    X: Tensor, Y: Tensor, u: InputUncertainty, bounds: Tensor, seed: int = 0
) -> NominalGP:
    """Build a plain GP with the noise that its own slopes give (McHutchon and Rasmussen 2011).

    The slopes come from a fit without this noise. It predicts f at the design, not an expectation.
    """
    plain = fit(NominalGP(X, Y, u, bounds))
    at = X.clone().requires_grad_()
    [slopes] = torch.autograd.grad(plain.posterior(at).mean.sum(), at)

    # ∂fᵀ Σ_x ∂f, in variances of the values
    noise = torch.einsum("ni,nij,nj->n", slopes, u.covariance(X), slopes) / Y.var()
    likelihood = FixedNoiseGaussianLikelihood(noise.clamp_min(1e-6), learn_additional_noise=True)
    likelihood.second_noise_covar = observation_noise().noise_covar
    return NominalGP(X, Y, u, bounds, likelihood=likelihood)


def borrowed(
    X: Tensor, Y: Tensor, u: InputUncertainty, bounds: Tensor, seed: int = 0
) -> ExpectationGP:
    """Build an expectation GP whose columns are stretched as the length scales of a plain GP say.

    This costs one plain fit instead of one more parameter per column.
    """
    lengths = fit(NominalGP(X, Y, u, bounds)).covar_module.lengthscale.detach()[0]
    low, high = bounds
    stretched = (high - low) * lengths / lengths.log().mean().exp()
    return ExpectationGP(X, Y, u, torch.stack([low, low + stretched]), seed=seed)


FAMILY: dict[str, Callable[..., UncertainInputGP]] = {
    "a plain GP's length scales": borrowed,
    "sliced Wasserstein": SlicedWassersteinGP,
    "energy distance": EnergyGP,
    "product over columns": under(ColumnSum),
    "noisy-input GP": noisy_input,
}
"""By what they compare."""
