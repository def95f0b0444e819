r"""The surrogates: features of P_x, a kernel that compares them, and a model of the noise.

Each is one class with one method, ``parts``. Starting values and priors of hyper-parameters stand
beside them; docs/models.md explains them. Notation: ``d`` columns of a design, ψ_P the embedding of
P_x under the base kernel k, ``s`` the output scale.
"""

import math
from copy import deepcopy
from typing import Any, ClassVar, cast

import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.models.utils.gpytorch_modules import (
    get_gaussian_likelihood_with_lognormal_prior as typical_noise,
)
from gpytorch.constraints import GreaterThan
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings import ScaleMixtureKernel, default_base_kernel
from airbo.embeddings.base_kernels import log_normal
from airbo.embeddings.features import Moments, Nominal
from airbo.embeddings.kernels import (
    ERBFKernel,
    IntegralKernel,
    MMDKernel,
    SKLKernel,
    positive,
)
from airbo.models.gp import Given, Parts, UncertainInputGP
from airbo.models.noise import UnseenInputLikelihood

START = 0.15
"""Where the fit of the common length scale starts, for each dimension. A fit that starts with a
long one may end where peaks count as noise."""
MODE, SPREAD = 0.3 / math.e, 0.7
"""Mode of the common length scale in one dimension, and the spread of its logarithm."""
SPREAD_OF_FACTORS = 0.5
"""Standard deviation of the logarithm of a parameter's factor, in its prior."""


def scaled(kernel: Kernel, start: float = 1.0, spread: float = 1.0) -> ScaleKernel:
    """Give a kernel a learnable output scale that starts at ``start``.

    ``spread`` may be smaller if the output scale explains all variation of the values and no noise
    parameter can take it over.
    """
    # s k̂, with log s ~ N(..., spread²) and its mode at start / e
    prior = log_normal(start / math.e, spread)
    scale = ScaleKernel(kernel, outputscale_prior=prior, outputscale_constraint=positive())
    scale.outputscale = start
    return scale


def lengthscale_prior(d: int, spread: float = math.sqrt(3)) -> LogNormalPrior:
    """Expect length scales that grow with √d, as BoTorch does on the unit cube."""
    return log_normal(math.exp(math.sqrt(2) - 3) * math.sqrt(d), spread)


def observation_noise(
    known: Tensor | None = None, typical: float = 0.05, spread: float = 1.5
) -> GaussianLikelihood:
    """Build a likelihood with a prior that expects noise.

    Unseen executed inputs scatter the values even of a noiseless experiment. A model that accounts
    for this scatter can pass a smaller ``typical`` and a larger ``spread``. If the variances of all
    observations are ``known``, nothing is learned: a new one has their mean.
    """
    # Σ_ii = σ_i²; GPyTorch's own σ² is that of new observations
    if known is not None and bool((known >= 0).all()):
        likelihood = GaussianLikelihood(noise_constraint=GreaterThan(0.0))
        likelihood.noise = known.mean()
        likelihood.raw_noise.requires_grad_(False)
        return likelihood
    # not known: learned, with a prior that knows the size of noise relative to that of the values;
    # log σ² ~ N(log typical, spread²), σ² ≥ 1e-6 of the variance of the values
    prior = LogNormalPrior(math.log(typical), spread)
    likelihood = GaussianLikelihood(noise_prior=prior, noise_constraint=GreaterThan(1e-6))
    likelihood.noise = typical
    return likelihood


class MMDGP(UncertainInputGP):
    r"""The paper's: a Gaussian process with the kernel :math:`\exp(-\alpha\,\mathrm{MMD}^2)`."""

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare embeddings by their MMD."""
        embedding = given.embedding(default_base_kernel)
        # k̂ = s exp(-α ‖ψ_P - ψ_Q‖²)
        kernel = MMDKernel(embedding, alpha=1.0, alpha_prior=LogNormalPrior(0.0, 1.0))
        return Parts(embedding, scaled(kernel), observation_noise(given.known_noise))


class UGP(UncertainInputGP):
    """Gaussian process with the integral kernel E k(u, v) (Oliveira 2019).

    Two switches turn it into ``ExpectationGP`` and ``RelevanceGP``.
    """

    knows_unseen_inputs: ClassVar[bool] = False
    """Whether the unseen executed input adds to the noise of an observation."""
    learns_relevance: ClassVar[bool] = False
    """Whether there is a length scale per parameter, if all parameters deviate independently."""

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Integrate the base kernel over both uncertainties."""
        embedding = given.embedding(lambda d: cls._base_kernel(given))
        # k̂ = s ⟨ψ_P, ψ_Q⟩, and s starts where f has the variance 1
        integral = IntegralKernel(embedding)
        spread = math.sqrt(0.5) if cls.knows_unseen_inputs else 1.0
        kernel = scaled(integral, 1 / integral.at_a_point.item(), spread)
        if given.likelihood is not None:
            return Parts(embedding, kernel, given.likelihood)
        if not cls.knows_unseen_inputs:
            return Parts(embedding, kernel, observation_noise(given.known_noise))
        if not embedding.base_kernel.is_stationary:
            name = type(embedding.base_kernel).__name__
            raise ValueError(f"{cls.__name__} needs a stationary base kernel, got {name}.")
        # Σ = σ² + s (k(x', x') - ‖ψ_P‖²): what is left for σ² is small
        noise = observation_noise(given.known_noise, typical=0.01, spread=2.0)
        return Parts(embedding, kernel, UnseenInputLikelihood(noise, embedding, kernel))

    @classmethod
    def _base_kernel(cls, given: Given) -> Kernel:
        # start and prior grow with d, as distances in the cube grow
        d = given.d
        if not cls.knows_unseen_inputs:
            return default_base_kernel(d)
        if not cls.learns_relevance or d == 1:
            return ScaleMixtureKernel(START * d, log_normal(START * d / math.e, math.sqrt(1 / 8)))
        # ℓ_c = r_c ℓ where columns deviate independently, else one ℓ for all
        apart = all(uncertainty.independent_columns for uncertainty in given.uncertainties)
        return ScaleMixtureKernel(
            START * d,
            log_normal(MODE * d, SPREAD),
            factor_prior=LogNormalPrior(0.0, SPREAD_OF_FACTORS),
            ard_num_dims=d if apart else None,
        )


class ExpectationGP(UGP):
    r"""Gaussian process over f that models expected values under P_x.

    If f ~ GP(0, k), expected values have the covariance :math:`\langle\psi_P, \psi_Q\rangle`, as
    in ``UGP``. An observation was made at one unknown point x' of P_x, where f has the variance
    k(x', x'). The difference, :math:`k(x', x') - \|\psi_P\|^2`, is added to the noise of the
    observation: the more f varies within P_x, the larger it is.

    There is one length scale, which starts at 0.15 d. A ``base_kernel`` must be stationary.
    """

    knows_unseen_inputs = True


class RelevanceGP(ExpectationGP):
    r"""``ExpectationGP`` that learns how much every parameter matters.

    Parameter c has the length scale :math:`r_c l`: one common scale times a factor with a narrow
    prior around 1. A few observations say little about the factors, so the model then behaves as if
    there were one length scale. Many observations can tell parameters apart.

    There are factors if every P_x of the experiments and of the use deviates independently in every
    parameter. Otherwise an ask would take several times as long, and there is one length scale.
    With one parameter it is an ``ExpectationGP``.
    """

    learns_relevance = True


class NominalGP(UncertainInputGP):
    """Plain Gaussian process on the designs: BoTorch's ``SingleTaskGP`` on the unit cube.

    It accepts ``uncertainty`` and ``estimator``, so that all surrogates can be built alike, but
    ignores them.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare designs, with BoTorch's kernel and noise."""
        # k̂(P_x, P_x') = k(x, x')
        kernel = given.base_kernel or get_covar_module_with_dim_scaled_prior(given.d)
        known = given.known_noise
        is_learned = known is None or bool((known < 0).any())
        noise = typical_noise() if is_learned else observation_noise(known)
        return Parts(Nominal(given.uncertainties, given.bounds), kernel, noise)


class ERBFGP(UncertainInputGP):
    """Gaussian process with the expected squared-exponential kernel (Dallaire 2011).

    An observation was made at one unknown point of P_x. Its variance is the whole output scale,
    which is more than that of the expected value. The difference is added to the noise. The kernel
    has a closed form, so ``estimator`` is not used and a ``base_kernel`` is refused.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare moments in closed form."""
        prior = lengthscale_prior(given.d, spread=math.sqrt(1.5))
        # k̂ = s E exp(-½ |u - v|² / ℓ²) for Gaussians u and v
        moments = _moments(cls, given)
        kernel = ERBFKernel(
            moments,
            ard_num_dims=given.d,
            lengthscale_prior=prior,
            lengthscale_constraint=positive(),
        )
        kernel.lengthscale = prior.mode
        covariance = scaled(kernel, spread=math.sqrt(0.5))
        likelihood = UnseenInputLikelihood(
            observation_noise(given.known_noise), moments, covariance
        )
        return Parts(moments, covariance, likelihood)


class SKLGP(UncertainInputGP):
    """Gaussian process with the symmetric Kullback-Leibler kernel (Moreno 2003).

    If covariances differ from design to design, this kernel is not positive semi-definite. The
    observations then get the least extra noise that makes their covariance so, and negative
    eigenvalues of a posterior covariance are cut off. The kernel has a closed form, so
    ``estimator`` is not used and a ``base_kernel`` is refused.
    """

    folds_exactly = False  # the extra noise depends on the rows

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare moments in closed form."""
        # k̂ = s exp(-v (KL(P|Q) + KL(Q|P)) / 2 ℓ²)
        prior, moments = lengthscale_prior(given.d), _moments(cls, given)
        kernel = SKLKernel(moments, lengthscale_prior=prior, lengthscale_constraint=positive())
        kernel.lengthscale = prior.mode
        return Parts(moments, scaled(kernel), observation_noise(given.known_noise))

    def forward(self, x: Float[Tensor, "*batch n c"], *others: Tensor) -> MultivariateNormal:
        """Return the prior at designs, with a covariance made positive semi-definite."""
        prior = super().forward(x, *others)
        K = prior.covariance_matrix
        # K + max(0, -λ_min) I
        missing = (-1e-9 - torch.linalg.eigvalsh(K)[..., 0]).clamp_min(0)
        shift = missing[..., None, None] * torch.eye(K.shape[-1]).to(K)
        return MultivariateNormal(prior.mean, to_linear_operator(K + shift))

    def __call__(self, *args: Any, **kwargs: Any) -> MultivariateNormal:
        """Predict as any exact Gaussian process does, but without negative variances."""
        distribution = super().__call__(*args, **kwargs)
        if self.training:
            return distribution
        # the posterior covariance V Λ Vᵀ
        values, vectors = torch.linalg.eigh(distribution.covariance_matrix)
        if bool((values >= 0).all()):
            return distribution
        # V max(Λ, 0) Vᵀ, the nearest covariance
        covariance = (vectors * values.clamp_min(1e-10).unsqueeze(-2)) @ vectors.mT
        return MultivariateNormal(distribution.mean, to_linear_operator(covariance))

    def _with_further(
        self, inputs: list[Tensor], targets: Tensor, **kwargs: Any
    ) -> UncertainInputGP:
        """Return a model with further data, recomputed.

        GPyTorch would update its factorization, but for a shifted covariance this update need not
        exist.
        """
        # rows of old and new data below each other: (n + k, ...)
        model = deepcopy(self)
        shape = torch.broadcast_shapes(self.train_inputs[0].shape[:-2], inputs[0].shape[:-2])
        shape = torch.broadcast_shapes(self.train_targets.shape[:-1], targets.shape[:-1], shape)
        model.train_inputs = cast(
            Any,
            tuple(
                _stack(known, new, shape, dim=-2)
                for known, new in zip(self.train_inputs, inputs, strict=True)
            ),
        )
        model.train_targets = _stack(self.train_targets, targets, shape, dim=-1)
        return model


def _moments(kind: type[UncertainInputGP], given: Given) -> Moments:
    if given.base_kernel is not None:
        raise TypeError(f"{kind.__name__} has a kernel of its own and takes no base_kernel.")
    return Moments(given.uncertainties, given.bounds)


def _stack(known: Tensor, new: Tensor, batch_shape: torch.Size, dim: int) -> Tensor:
    return torch.cat([t.expand(*batch_shape, *t.shape[dim:]) for t in (known, new)], dim=dim)
