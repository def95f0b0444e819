"""What one more experiment is worth for the recommendation."""

from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from jaxtyping import Float
from torch import Tensor

from airbo.models import UncertainInputGP
from airbo.models.rows import packed
from airbo.uncertainty import InputUncertainty

N_POSSIBLE = 24
"""Nodes of the Gauss-Hermite rule for the value that an experiment may give."""


class ExpectedGain(AcquisitionFunction):
    r"""How much one experiment is expected to raise the best mean: the knowledge gradient.

    An experiment at x under P moves the mean of every design a in use under Q along a line in one
    standard normal variable Z:

    .. math:: \mu'(a) = \mu(a) + s_a(x) Z, \qquad
              s_a(x) = \frac{\mathrm{Cov}(F_Q(a), F_P(x))}{\sqrt{\mathrm{Var} F_P(x) + \sigma^2(x)}}

    What is recommended afterwards is the best of the known designs and of x itself. So the gain is

    .. math:: \mathbb E \max_a \mu'(a) - \max_a \mu(a)

    It is large where a design may turn out better than the best one so far. It is also large at
    good designs that are not known well: the experiment then confirms one of them, or refutes it.
    """

    n_steps = 20
    """Steps that a search takes from each start; the gain has kinks."""

    def __init__(
        self,
        model: UncertainInputGP,
        known: Float[Tensor, "k m"],
        experiments: InputUncertainty | None = None,
    ) -> None:
        """Prepare everything that does not depend on the experiment.

        Args:
            model: A fitted model.
            known: Designs that can be recommended, in the columns of the model.
            experiments: The uncertainty of the experiment; by default that of most observations.
        """
        super().__init__(model=model)
        self.experiments = experiments or model.features.uncertainties[0]
        self.same = model.deployment in (None, self.experiments)
        with torch.no_grad():
            model.posterior(known[:1], uncertainty=self.experiments)  # all features exist now
            self._prepare(model, known)
        z, weights = np.polynomial.hermite_e.hermegauss(N_POSSIBLE)
        self.z = torch.as_tensor(z).to(known)
        self.weights = torch.as_tensor(weights / weights.sum()).to(known)

    def _prepare(self, model: Any, known: Tensor) -> None:
        rows = model.train_inputs
        observed, choices = model.features(packed(rows)), model.features(model.numbered(known))
        noise = model.likelihood.noise_covar([*rows], shape=rows[0].shape[:-1]).to_dense()
        K = model.covar_module(observed).to_dense() + noise  # (n, n)
        self.L = torch.linalg.cholesky(K)
        across = model.covar_module(choices, observed).to_dense()  # (k, n)
        prior = model.mean_module(rows[0])[:1]
        residual = (model.train_targets - prior).unsqueeze(-1)
        self.prior, self.weight = prior, torch.cholesky_solve(residual, self.L)  # μ = m + k K⁻¹ r
        self.means = prior + (across @ self.weight).squeeze(-1)  # (k,)
        self.solved = torch.cholesky_solve(across.mT, self.L)  # (n, k)
        self.compared = torch.cat([observed, choices])  # (n + k, f)

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the gain of each experiment of a batch, in units of the transformed values."""
        model: Any = self.model
        n = len(self.L)
        x = model.numbered(X, self.experiments)
        f = model.features(x)
        k = model.covar_module(f, self.compared).to_dense()  # (..., 1, n + k)
        to_observed = k[..., :n]
        shifts = k[..., n:] - to_observed @ self.solved  # Cov(F_Q(a), F_P(x)), (..., 1, k)
        half = torch.linalg.solve_triangular(self.L, to_observed.mT, upper=False)
        variance = model.covar_module(f, diag=True) - half.square().sum(-2)  # (..., 1)
        noise = model.likelihood.noise_covar([x], shape=x.shape[:-1])
        scatter = variance.clamp_min(0) + noise.diagonal(dim1=-2, dim2=-1)
        mean, own = self._in_use(model, X, f, to_observed, variance)
        means = torch.cat([self.means.expand(shifts.shape), mean.unsqueeze(-1)], dim=-1)
        s = torch.cat([shifts, own.unsqueeze(-1)], dim=-1) / scatter.unsqueeze(-1).sqrt()
        lines = means + s * self.z.unsqueeze(-1)  # (..., nodes, k + 1)
        return lines.amax(-1) @ self.weights - means.squeeze(-2).amax(-1)

    def _in_use(
        self, model: Any, X: Tensor, f: Tensor, to_observed: Tensor, variance: Tensor
    ) -> tuple[Float[Tensor, "*batch 1"], Float[Tensor, "*batch 1"]]:
        """Return the mean of x itself in use, and its covariance with the experiment."""
        if self.same:
            return self.prior + (to_observed @ self.weight).squeeze(-1), variance
        used = model.features(model.numbered(X))
        across = model.covar_module(used, self.compared[: len(self.L)]).to_dense()
        explained = across @ torch.cholesky_solve(to_observed.mT, self.L)  # (..., 1, 1)
        covariance = model.covar_module(used, f).to_dense() - explained
        return self.prior + (across @ self.weight).squeeze(-1), covariance.squeeze(-1)
