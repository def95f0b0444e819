"""The expectation GP averaged over length scales: a candidate that was not taken."""

import copy
import math
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings import RationalQuadraticSum
from airbo.models import ExpectationGP
from experiments.subjects.internals import MODE, SPREAD, log_normal, without_numerical_warnings

MULTIPLES = (0.25, 0.5, 1.0, 2.0)
"""Length scales of the members, relative to the mode of the prior."""
N_STEPS = 20
"""Steps of the fit of a member, which starts from the fitted model."""


class HedgedGP(ExpectationGP):
    r"""Predicts with the moments of a mixture over length scales.

    Every member k has a fixed length scale, and the other hyper-parameters fitted to it. Its weight
    is proportional to the posterior density of its hyper-parameters:

    .. math:: \mu = \sum_k w_k \mu_k, \qquad
              \Sigma = \sum_k w_k \bigl(\Sigma_k + (\mu_k - \mu)(\mu_k - \mu)^\top\bigr)
    """

    _members: tuple[list[Any], Tensor] | None = None

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the paper's base kernel with one length scale and a wide prior."""
        return RationalQuadraticSum(math.e * MODE * d, log_normal(MODE * d, SPREAD), shared=True)

    def train(self, mode: bool = True) -> "HedgedGP":
        """Forget the members when a fit begins."""
        if mode:
            self._members = None
        return super().train(mode)

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Return the mixture, as a Gaussian with its moments."""
        if self._members is None:
            self._members = members(self)
        models, weights = self._members
        each = [ExpectationGP.posterior(m, X, *args, **kwargs).distribution for m in models]
        means = torch.stack([p.mean for p in each])
        w = weights.reshape(-1, *[1] * (means.dim() - 1))
        mean = (w * means).sum(0)
        apart = means - mean
        spread = apart.unsqueeze(-1) * apart.unsqueeze(-2)
        covariances = torch.stack([p.covariance_matrix for p in each]) + spread
        covariance = to_linear_operator((w.unsqueeze(-1) * covariances).sum(0))
        return GPyTorchPosterior(MultivariateNormal(mean, covariance))


def members(model: HedgedGP) -> tuple[list[Any], Tensor]:
    """Return copies of a fitted model with other length scales, and their weights."""
    models, scores = [], []
    for multiple in MULTIPLES:
        member = copy.deepcopy(model)
        kernel = next(m for m in member.modules() if isinstance(m, RationalQuadraticSum))
        kernel.lengthscales = multiple * MODE * model.features.d
        kernel.raw_lengthscales.requires_grad_(False)
        mll = ExactMarginalLogLikelihood(member.likelihood, member)
        with torch.enable_grad(), without_numerical_warnings():
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": N_STEPS}})
        member.train()
        with torch.no_grad():
            density = mll(member(*member.train_inputs), member.train_targets)
        member.eval()
        models.append(member)
        # the prior is a density of the length scale; the grid is even in its logarithm
        scores.append(density * member.train_targets.numel() + math.log(multiple))
    return models, torch.stack(scores).softmax(0)
