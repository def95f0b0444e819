r"""Noise of single observations, each at an unknown point of P_x, and of means of replicates.

Notation: an observation is :math:`y = f(x') + \zeta`, :math:`x' \sim P_x`, and its model the
expected value E f plus noise. ``n`` rows, with ``c`` observations each; σ² the variance of ζ,
learned unless it is known for a row; s the output scale; k the base kernel, k̂ that of expected
values.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import ScaleKernel
from gpytorch.likelihoods import Likelihood
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.mlls import AddedLossTerm
from gpytorch.module import Module
from jaxtyping import Float
from linear_operator.operators import DiagLinearOperator, LinearOperator
from torch import Tensor

from airbo.embeddings.features import Features
from airbo.models import rows
from airbo.models.density import Observed


class NoiseOfRows(Noise, ABC):
    """Noise that differs from row to row of the training data."""

    observed: Sequence[Tensor] = ()
    """The training data, because GPyTorch does not always pass them."""

    def forward(
        self, *params: Any, shape: torch.Size | None = None, **kwargs: Any
    ) -> LinearOperator:
        """Return the diagonal noise covariance of rows.

        Args:
            *params: Rows, as in ``train_inputs``, or designs; by default the observations.
            shape: Shape of the variances.
            **kwargs: ``noise``, as BoTorch passes it, holds variances to use instead; ``expected``
                the prior variances of the expected values, where they are known already.
        """
        if kwargs.get("noise") is not None:
            return DiagLinearOperator(kwargs["noise"])
        # Σ = diag(σ₁², ..., σ_n²)
        inputs = rows.given(params) or self.observed
        if not inputs or (shape is not None and shape[-1] != inputs[0].shape[-2]):
            raise ValueError(
                "The noise of this likelihood differs from design to design: call it with the "
                "designs, as likelihood(distribution, [X])."
            )
        # GPyTorch passes designs alone where it means the observations, with all their parts
        if self.observed and len(inputs) == 1 and inputs[0] is self.observed[0]:
            inputs = self.observed
        total = self.variance(inputs, kwargs.get("expected"))
        return DiagLinearOperator(total if shape is None else total.expand(shape))

    @abstractmethod
    def variance(
        self, inputs: Sequence[Tensor], expected: Float[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "*batch n"]:
        """Return the noise variances of rows; ``expected`` as for ``forward``."""


class UnseenInputNoise(NoiseOfRows):
    r"""Observation noise plus the variance due to the unseen executed input.

    .. math:: \sigma^2 + s \, (k(x', x') - \hat k(P_x, P_x))

    for a kernel of output scale ``s``: f at one point of P_x has a larger variance than the
    expected value of f.
    """

    def __init__(self, noise: Module, features: Features, kernel: ScaleKernel) -> None:
        """Add to ``noise`` the variance that follows from the features and kernel of the model.

        ``kernel.base_kernel`` must have the attribute ``at_a_point``.
        """
        super().__init__()
        self.observation_noise = noise
        self.features = features
        self.kernel = kernel

    @property
    def noise(self) -> Tensor:
        """The observation noise alone."""
        return self.observation_noise.noise

    def variance(
        self, inputs: Sequence[Tensor], expected: Float[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "*batch n"]:
        """Return the observation noise plus the variance due to unseen executed inputs."""
        # Var(f(x') - E f) + σ², with Var E f = s k̂(P_x, P_x)
        if expected is None:
            expected = self.kernel(self.features(rows.packed(inputs)), diag=True)
        return self.beyond(expected) + known_or(self.noise, inputs)

    def beyond(self, expected: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """Return the variance due to unseen executed inputs, from that of expected values."""
        # s (k(x', x') - k̂(P_x, P_x))
        return (self.at_a_point - expected).clamp_min(0)

    @property
    def at_a_point(self) -> Float[Tensor, ""]:
        """The variance of f at a point of P_x, s k(x', x')."""
        variance: Tensor = self.kernel.outputscale * self.kernel.base_kernel.at_a_point
        return variance


def known_or(learned: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    """Return the variances of the noise of rows: those that are known, otherwise the learned."""
    # σ_i² where somebody said it, else σ²
    known = rows.known_noise(inputs)
    return learned if known is None else torch.where(known < 0, learned, known)


class MeanNoise(NoiseOfRows):
    r"""Noise of the mean of replicates: :math:`\sigma^2(x) / c` for ``c`` observations."""

    def __init__(self, noise: Module) -> None:
        """Divide ``noise``, the noise of one observation, by the number of replicates."""
        super().__init__()
        self.of_one = noise

    @property
    def noise(self) -> Tensor:
        """The noise of one observation."""
        return self.of_one.noise

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        self.of_one.noise = value

    @property
    def raw_noise(self) -> Tensor:
        """The raw parameter of the noise of one observation."""
        return self.of_one.raw_noise

    def variance(
        self, inputs: Sequence[Tensor], expected: Float[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "*batch n"]:
        """Divide by the number of observations that a row stands for."""
        # Var of the mean of c observations: σ² / c
        # c observations of one row: y_1, ..., y_c
        c, each = rows.counts(inputs), self.each(inputs, expected)
        return each if c is None else each / c

    def each(
        self, inputs: Sequence[Tensor], expected: Float[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "*batch n"]:
        """Return the noise variance of a single observation of every row."""
        # σ²(x), with what unseen inputs add, or the σ_i² that is known
        noise = self.of_one([*inputs], shape=inputs[0].shape[:-1], expected=expected)
        variance: Tensor = noise.diagonal(dim1=-2, dim2=-1)
        if isinstance(self.of_one, UnseenInputNoise):  # it knows σ_i² and adds to it
            return variance
        return known_or(variance, inputs)


class WithinRows(AddedLossTerm):
    r"""Log likelihood of the scatter of replicates around their mean.

    A row of :math:`c` observations with squared deviations :math:`S` from their mean contributes

    .. math:: -\tfrac12 \Big[(c - 1) \log 2\pi\sigma^2 + \log c + S / \sigma^2\Big]

    so that folding does not change the likelihood.
    """

    def __init__(self, noise: MeanNoise, inputs: Sequence[Tensor]) -> None:
        """Cover all rows."""
        self.noise, self.inputs = noise, inputs

    def loss(self, *params: Any) -> Float[Tensor, "*batch"]:
        """Return the sum over rows, to be added to the log likelihood."""
        # Σ_rows -½ [(c - 1) log 2πσ² + log c + S / σ²]
        c, within = (t.squeeze(-1) for t in self.inputs[2:4])
        variance = self.noise.each(self.inputs)
        terms = (c - 1) * torch.log(2 * math.pi * variance) + c.log() + within / variance
        return -0.5 * terms.sum(-1)


class UnseenInputLikelihood(_GaussianLikelihoodBase):
    """Gaussian likelihood with the noise of unseen executed inputs."""

    def __init__(
        self, likelihood: _GaussianLikelihoodBase, features: Features, kernel: ScaleKernel
    ) -> None:
        """Take the observation noise from ``likelihood``."""
        super().__init__(UnseenInputNoise(likelihood.noise_covar, features, kernel))

    def marginal(
        self, function_dist: MultivariateNormal, *params: Any, **kwargs: Any
    ) -> MultivariateNormal:
        """Add the noise; during a fit, the diagonal of K has all prior variances already."""
        if isinstance(function_dist, Observed):
            K = function_dist.lazy_covariance_matrix
            kwargs["expected"] = K.diagonal(dim1=-2, dim2=-1)
        return super().marginal(function_dist, *params, **kwargs)

    @property
    def noise(self) -> Tensor:
        """The observation noise alone, without what unseen inputs add."""
        return self.noise_covar.noise


def observe(likelihood: Likelihood, inputs: Sequence[Tensor]) -> None:
    """Hand the training rows to a likelihood."""
    # σ²(x) of rows depends on all their parts, and GPyTorch passes designs only
    for module in likelihood.modules():
        if isinstance(module, NoiseOfRows):
            module.observed = tuple(inputs)


def unseen_input_noise(likelihood: Likelihood) -> UnseenInputNoise | None:
    """Return the part of a likelihood that depends on features, if there is one."""
    # it may be inside the noise of means of replicates
    for module in likelihood.modules():
        if isinstance(module, UnseenInputNoise):
            return module
    return None
