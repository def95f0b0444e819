r"""Many draws of f at many executed inputs, for measures of f(x') over P_x.

A draw is the posterior mean plus a deviation. As in :mod:`airbo.models.paths`, Matheron's rule
makes a deviation from a sum of random waves g and draws ε of the noise:

.. math:: f = \mu + e, \qquad e(x) = g(x) - K_{xX} (K_{XX} + \Sigma)^{-1} (g(X) + \varepsilon)

All draws share their waves, so a point costs one row of cosines, however many draws there are.
Deviations come in pairs, e and -e, so the mean over all draws is exactly the posterior mean.
"""

from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from gpytorch.kernels import ScaleKernel
from jaxtyping import Float
from torch import Size, Tensor

from airbo.embeddings.features import MAX_DESIGNS
from airbo.embeddings.kernels import IntegralKernel, MMDKernel
from airbo.models import rows
from airbo.models.conditioned import Conditioned
from airbo.models.gp import UncertainInputGP
from airbo.models.noise import unseen_input_noise
from airbo.models.paths import draw_prior
from airbo.uncertainty import Exact, InputUncertainty


@dataclass(frozen=True)
class Drawn:
    """Draws of f at some executed inputs: ``mean ± deviations``, two for each of p pairs."""

    mean: Float[Tensor, "*batch s"]
    """Posterior mean of f."""
    deviations: Float[Tensor, "p *batch s"]
    """Deviations of the draws from the mean; each counts with both signs."""
    prior: Float[Tensor, "p *batch s"]
    """The same draws under the prior."""
    near: Float[Tensor, "*batch s 3"]
    """How many observations are near, and what they say of the roughness: see ``Surprises``."""


@dataclass(frozen=True)
class Surprises:
    r"""How far observations lie from what all the others say of them, and which of them are near.

    With errors :math:`y - m` and :math:`A = K + \Sigma`, an observation left out lies

    .. math:: z_j = \frac{[A^{-1} (y - m)]_j}{\sqrt{[A^{-1}]_{jj}}}

    standard deviations from its prediction. On a plateau all :math:`z_j` are small, at a cliff some
    are large, although the prior is as rough here as there.

    Part of the variance :math:`V_j = 1 / [A^{-1}]_{jj}` of such a prediction, :math:`u_j`, is due
    to the unseen executed input. That part is the variance of f within P_x, and all
    :math:`z_j` says of it is its share: the Fisher information about the logarithm of the
    standard deviation within P_x is :math:`2 (u_j / V_j)^2`.
    """

    sizes: Float[Tensor, " n"]
    """:math:`|z_j|`, so scaled that their mean is 1."""
    scales: Float[Tensor, " n"]
    """Product of the variances of f at a point and of the observed expected value, without data."""
    information: Float[Tensor, " n"]
    """:math:`(u_j / V_j)^2`."""

    @classmethod
    def of(
        cls,
        L: Float[Tensor, "n n"],
        errors: Float[Tensor, " n"],
        scales: Float[Tensor, " n"],
        unseen: Float[Tensor, " n"],
    ) -> "Surprises":
        """Leave out one observation at a time.

        Args:
            L: Cholesky factor of the covariance of the observations, noise included.
            errors: Observations minus the prior mean.
            scales: See above.
            unseen: Variances due to unseen executed inputs, u.
        """
        # [A⁻¹ (y - m)]_j / √[A⁻¹]_jj
        inverse = torch.cholesky_inverse(L)
        z = (inverse @ errors) / inverse.diagonal().sqrt()
        # |z_j| / mean |z|
        mean = z.abs().mean()
        sizes = z.abs() / mean if mean > 0 else torch.ones_like(z)
        return cls(sizes, scales, (unseen * inverse.diagonal()).square())

    def near(self, covariance: Float[Tensor, "k m"]) -> Float[Tensor, "k 3"]:
        r"""Return how many observations are near to points, their surprises, and what these tell.

        Observation j counts :math:`w_j = \mathrm{Corr}(f(x'), F_j)^4`. The three sums are
        :math:`\sum_j w_j`, :math:`\sum_j w_j |z_j|` and :math:`\sum_j w_j (u_j / V_j)^2`.

        Args:
            covariance: Of f at points with the observed expected values, and possibly others.
        """
        # Corr⁴ = (Cov² / (Var Var))²
        w = (covariance[:, : len(self.sizes)].square() / self.scales).square()
        return w @ torch.stack([torch.ones_like(self.sizes), self.sizes, self.information], -1)


class FunctionDraws:
    """Draws of f from the posterior of a model, with torch's random numbers."""

    def __init__(
        self,
        model: UncertainInputGP,
        n_pairs: int,
        n_believed: int = 0,
    ) -> None:
        """Draw deviations.

        Args:
            model: The fitted model.
            n_pairs: How many deviations; each counts with both signs.
            n_believed: How many observations, the last ones, nobody made: they surprise nobody.
        """
        self.model = check_has_function(model).eval()
        self.n_pairs = n_pairs
        self._known: dict[InputUncertainty, tuple[UncertainInputGP, Tensor]] = {}
        with torch.no_grad():
            self._observed = X = rows.packed(model.train_inputs)
            self.prior = draw_prior(model, Size(), n_pairs)
            g, known = self.prior(X), Conditioned(model)
            # weights: (K + Σ)⁻¹ (y - μ) for the mean, -(K + Σ)⁻¹ (g(X) + ε) for each deviation
            n, errors = len(known.errors), known.errors.unsqueeze(-1)
            epsilon = known.noise.sqrt().unsqueeze(-1) * torch.randn(n, n_pairs).to(errors)
            self.weights = known.solve(torch.cat([errors, -g - epsilon], -1))
            # Var f(x) Var F_i, to turn covariances into correlations
            m, scales = n - n_believed, _variance_at_a_point(model) * known.K.diagonal()
            unseen = _unseen_variances(model, known.K.diagonal())
            self.surprises = Surprises.of(known.L[:m, :m], errors[:m, 0], scales[:m], unseen[:m])

    def __call__(self, X: Float[Tensor, "*batch s d"]) -> "Drawn":
        """Return draws at executed inputs, in the units of the observed values."""
        shape = X.shape[:-1]
        mean, prior, update, near = self._under(X.reshape(-1, X.shape[-1]), Exact())
        scale, shift = self.model.units
        return Drawn(
            (shift + scale * mean).reshape(shape),
            scale * (prior + update).mT.reshape(-1, *shape),
            scale * prior.mT.reshape(-1, *shape),
            near.reshape(*shape, 3),
        )

    def expected(
        self, X: Float[Tensor, "*batch q d"], uncertainty: InputUncertainty
    ) -> Float[Tensor, "S *batch q"]:
        """Return draws of the expected values of designs.

        Expected waves take the place of waves at executed inputs, so a design costs one row.
        """
        shape = X.shape[:-1]
        mean, prior, update, _ = self._under(X.reshape(-1, X.shape[-1]), uncertainty)
        scale, shift = self.model.units
        level, e = shift + scale * mean, scale * (prior + update).mT
        return torch.cat([level + e, level - e]).reshape(-1, *shape)

    def _under(
        self, X: Float[Tensor, "k d"], uncertainty: InputUncertainty
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return means, prior deviations, their updates and surprises, in units of the model."""
        if uncertainty not in self._known:
            with torch.no_grad():
                model = self.model.including(uncertainty)
                self._known[uncertainty] = model, model.features(self._observed)
        model, observed = self._known[uncertainty]
        parts = []
        for some in model.numbered(X, uncertainty).split(MAX_DESIGNS):
            # K_xX w for the mean and for every deviation, and g(x) = φ(x) θ
            K = model.covar_module(model.features(some), observed).to_dense()
            parts.append(
                (K @ self.weights, self.prior(some, model.features), self.surprises.near(K))
            )
        update, prior, near = (torch.cat(each) for each in zip(*parts, strict=True))
        return model.mean_module(X) + update[:, 0], prior, update[:, 1:], near


def _variance_at_a_point(model: UncertainInputGP) -> Float[Tensor, ""]:
    """Return the prior variance of f."""
    kernel: Any = model.covar_module
    scaled = isinstance(kernel, ScaleKernel)
    inner, scale = (kernel.base_kernel, kernel.outputscale) if scaled else (kernel, 1.0)
    # exp(-α MMD²) is 1 at a point
    at_a_point = inner.at_a_point if isinstance(inner, IntegralKernel) else 1.0
    return torch.as_tensor(scale * at_a_point).to(model.train_targets).squeeze()


def _unseen_variances(
    model: UncertainInputGP, expected: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """Return the variances of observations due to unseen executed inputs; 0: nobody knows them.

    Args:
        model: The model of the observations.
        expected: Prior variances of the observed expected values.
    """
    noise = unseen_input_noise(model.likelihood)
    if noise is None:
        return torch.zeros_like(expected)
    # s (k(x', x') - k̂(P, P)) / c, for rows of c observations
    counts = rows.counts(model.train_inputs)
    return noise.beyond(expected) / (1.0 if counts is None else counts)


def has_function(model: Any) -> TypeGuard[UncertainInputGP]:
    """Whether a model is one of f itself, and not only of expected values of f."""
    kernel: Any = getattr(model, "covar_module", None)
    inner = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    return isinstance(model, UncertainInputGP) and isinstance(inner, IntegralKernel | MMDKernel)


def check_has_function(model: Any) -> UncertainInputGP:
    """Return the model if it models f itself, and not only expected values of f."""
    if has_function(model):
        return model
    raise ValueError(
        f"{type(model).__name__} has no model of f itself, which every measure but the mean needs. "
        "Use surrogate='default', 'ugp' or 'mmd'."
    )
