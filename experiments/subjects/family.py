"""Other ways to compare uncertain inputs that were tried as the default and rejected."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings import Empirical
from airbo.models import MMDGP, ExpectationGP, NominalGP, UncertainInputGP
from airbo.uncertainty import InputUncertainty, base_draws
from experiments.subjects.data import fit
from experiments.subjects.internals import (
    Features,
    Given,
    Parts,
    lengthscale_prior,
    log_normal,
    observation_noise,
    positive,
    scaled,
)

N_BASES, N_QUANTILES, N_SAMPLES = 4, 32, 24


class Quantiles(Features):
    """Quantiles of P_x along lines: squared distances are sliced Wasserstein distances, times d.

    The lines are orthonormal bases, so that the distance of a pure shift of P_x is its length.
    """

    def __init__(
        self,
        uncertainties: Sequence[InputUncertainty],
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> None:
        """Draw the lines."""
        super().__init__(uncertainties, bounds)
        self.seed = seed
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(N_BASES, self.d, self.d, generator=generator, dtype=bounds.dtype)
        bases = torch.linalg.qr(drawn).Q
        self.register_buffer("lines", bases.transpose(0, 1).flatten(1))  # (d, N_BASES d)

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Sort samples along every line."""
        each = []
        for u in self.uncertainties:
            base = base_draws(N_QUANTILES, u.n_base(self.d), self.seed, dtype=X.dtype)
            samples = (u.perturb(X, base) - self.low) / self.width  # (..., n, s, d)
            each.append((samples @ self.lines).sort(dim=-2).values.flatten(-2))
        chosen = torch.stack(each).take_along_dim(choice[None, ..., None], dim=0).squeeze(0)
        return chosen / math.sqrt(N_BASES * N_QUANTILES)


class SlicedWassersteinGP(UncertainInputGP):
    """Squared exponential of the sliced Wasserstein distance."""

    @classmethod
    def parts(cls, given: Given) -> Parts:
        prior = lengthscale_prior(given.d)
        kernel = RBFKernel(lengthscale_prior=prior, lengthscale_constraint=positive())
        kernel.lengthscale = prior.mode
        quantiles = Quantiles(given.uncertainties, given.bounds, given.seed)
        return Parts(quantiles, scaled(kernel), observation_noise())


class Distance(Kernel):
    r"""The base kernel under which MMD² is the energy distance.

    .. math:: k(x, y) = \tfrac12 (\|x - c\| + \|y - c\| - \|x - y\|) / l

    ``c`` is the middle of the unit cube, which the distance does not depend on.
    """

    def __init__(self, lengthscale: float) -> None:
        super().__init__()
        self.unit = lengthscale

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate at all pairs of points, or at matching ones."""
        r1, r2 = ((x - 0.5).norm(dim=-1) for x in (x1, x2))
        apart = self.covar_dist(x1, x2, diag=diag, **params)
        together = r1 + r2 if diag else r1.unsqueeze(-1) + r2.unsqueeze(-2)
        return (together - apart) / (2 * self.unit)


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
    "energy distance": under(lambda d: Distance(0.3 * math.sqrt(d))),
    "product over columns": under(ColumnSum),
    "noisy-input GP": noisy_input,
}
"""By what they compare."""
