"""Surrogates that treat every P_x as a Gaussian."""

import math
from copy import deepcopy
from typing import Any, cast

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods.noise_models import FixedGaussianNoise
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings.features import Moments
from airbo.kernels import ERBFKernel, SKLKernel
from airbo.kernels.constraints import positive
from airbo.models.base import UncertainInputGP
from airbo.models.data import Given, Parts
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.models.priors import lengthscale_prior, observation_noise, scaled


class ERBFGP(UncertainInputGP):
    """Gaussian process with the expected squared-exponential kernel (Dallaire 2011).

    An observation was made at one unknown point of P_x: it varies by the whole output scale,
    more than the expected value that the kernel describes. The difference goes to the noise.
    There is a closed form: ``estimator`` is not used, and a ``base_kernel`` is refused.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare moments in closed form."""
        prior = lengthscale_prior(given.d, spread=math.sqrt(1.5))
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

    Where covariances differ from design to design this kernel is not positive semi-definite; the
    observations then get the least extra noise that makes their covariance so, and negative
    directions of a posterior covariance are cut off. There is a closed form: ``estimator`` is not
    used, and a ``base_kernel`` is refused.
    """

    folds_exactly = False  # the extra noise depends on the rows

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare moments in closed form."""
        prior, moments = lengthscale_prior(given.d), _moments(cls, given)
        kernel = SKLKernel(moments, lengthscale_prior=prior, lengthscale_constraint=positive())
        kernel.lengthscale = prior.mode
        return Parts(moments, scaled(kernel), observation_noise(given.known_noise))

    def forward(self, x: Float[Tensor, "*batch n c"], *others: Tensor) -> MultivariateNormal:
        """Return the prior at designs, with a covariance made positive semi-definite."""
        prior = super().forward(x, *others)
        K = prior.covariance_matrix
        missing = (-1e-9 - torch.linalg.eigvalsh(K)[..., 0]).clamp_min(0)
        shift = missing[..., None, None] * torch.eye(K.shape[-1]).to(K)
        return MultivariateNormal(prior.mean, to_linear_operator(K + shift))

    def __call__(self, *args: Any, **kwargs: Any) -> MultivariateNormal:
        """Predict as any exact Gaussian process, without negative variances."""
        distribution = super().__call__(*args, **kwargs)
        if self.training:
            return distribution
        values, vectors = torch.linalg.eigh(distribution.covariance_matrix)
        if bool((values >= 0).all()):
            return distribution
        covariance = (vectors * values.clamp_min(1e-10).unsqueeze(-2)) @ vectors.mT
        return MultivariateNormal(distribution.mean, to_linear_operator(covariance))

    def _with_further(
        self, inputs: list[Tensor], targets: Tensor, **kwargs: Any
    ) -> UncertainInputGP:
        """Return a model with further data, recomputed.

        GPyTorch would update its factorization; under a covariance that had to be shifted the
        update need not exist.
        """
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
        noise = model.likelihood.noise_covar
        if isinstance(noise, FixedGaussianNoise):
            mean = noise.noise.mean(-1, keepdim=True)
            new = kwargs.get("noise", mean.expand_as(targets))
            noise.noise = _stack(noise.noise, new, shape, dim=-1)
        return model


def _moments(kind: type[UncertainInputGP], given: Given) -> Moments:
    if given.base_kernel is not None:
        raise TypeError(f"{kind.__name__} has a kernel of its own and takes no base_kernel.")
    return Moments(given.uncertainties, given.bounds)


def _stack(known: Tensor, new: Tensor, batch_shape: torch.Size, dim: int) -> Tensor:
    return torch.cat([t.expand(*batch_shape, *t.shape[dim:]) for t in (known, new)], dim=dim)
