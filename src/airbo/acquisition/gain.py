r"""What one more experiment is worth: the knowledge gradient, and what it teaches about a design.

Notation, in the units of the model:

- ``n`` observations, ``c`` known designs that can be recommended, and the experiment x itself;
- ``a`` (..., c + 1): posterior means μ of these designs in use;
- ``b`` (..., c + 1): how far one standard deviation of the experiment's value moves each mean;
- ``Z``: the value that the experiment will give, standardized: a standard normal number.

The mean of design i after the experiment is the line a_i + b_i Z. What is recommended then is the
highest line, so everything follows from E max_i (a_i + b_i Z).
"""

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from jaxtyping import Float
from torch import Tensor
from torch.nn import ModuleList

from airbo.models import Conditioned, UncertainInputGP
from airbo.uncertainty import InputUncertainty


def gain_of_lines(a: Float[Tensor, "*batch k"], b: Float[Tensor, "*batch k"]) -> Tensor:
    r"""Return :math:`\mathbb E \max_i (a_i + b_i Z) - \max_i a_i` in closed form.

    Line i is the highest one for Z between

    .. math:: l_i = \max_{j: b_j < b_i} \frac{a_j - a_i}{b_i - b_j}, \qquad
              u_i = \min_{j: b_j > b_i} \frac{a_j - a_i}{b_i - b_j},

    where it is higher than all flatter and than all steeper lines; nowhere if :math:`l_i \ge u_i`.
    With :math:`P_i = P(l_i < Z < u_i) = \Phi(u_i) - \Phi(l_i)` and
    :math:`M_i = \mathbb E[Z; l_i < Z < u_i] = \varphi(l_i) - \varphi(u_i)`,

    .. math:: \mathbb E \max_i (a_i + b_i Z) = \sum_i a_i P_i + b_i M_i.

    The integrand is continuous where the highest line changes, so that moving the ends
    :math:`l_i, u_i` changes nothing to first order (the envelope theorem): the gradient by
    :math:`a_i` is :math:`P_i` and by :math:`b_i` is :math:`M_i`.
    """
    # E max_i (a_i + b_i Z) - a_* = E max_i ((a_i - a_*) + (b_i - b_*) Z), because E b_* Z = 0:
    # the best line of today becomes 0, and small gains are not differences of large numbers
    best = a.argmax(-1, keepdim=True)
    a, b = a - a.gather(-1, best), b - b.gather(-1, best)
    with torch.no_grad():
        lower, upper = _highest_between(a, b)
        # Φ(u) - Φ(l) = Φ(-l) - Φ(-u): take the tail in which both are small
        sign = torch.where(lower > 0, -1.0, 1.0)
        P = sign * (torch.special.ndtr(sign * upper) - torch.special.ndtr(sign * lower))
        M = _normal_density(lower) - _normal_density(upper)
        nowhere = lower >= upper
        P, M = P.masked_fill(nowhere, 0.0), M.masked_fill(nowhere, 0.0)
    return (a * P + b * M).sum(-1)


def _highest_between(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return for which Z each line is the highest; the lower end is above the upper if never."""
    # all pairs at once: with at most 65 lines, this is quicker than sorting by slopes
    steeper = b.unsqueeze(-1) - b.unsqueeze(-2)  # b_i - b_j, (..., i, j)
    behind = a.unsqueeze(-2) - a.unsqueeze(-1)  # a_j - a_i
    parallel = steeper == 0
    crossing = behind / steeper.masked_fill(parallel, 1.0)
    lower = crossing.masked_fill(steeper <= 0, -math.inf).amax(-1)
    upper = crossing.masked_fill(steeper >= 0, math.inf).amin(-1)
    # of parallel lines the highest counts, and the first of equal ones
    first = torch.ones_like(parallel).tril(-1)
    beaten = (parallel & ((behind > 0) | ((behind == 0) & first))).any(-1)
    return lower.masked_fill(beaten, math.inf), upper


def _normal_density(z: Tensor) -> Tensor:
    return torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)


class ExpectedGain(AcquisitionFunction):
    r"""How much one experiment is expected to raise the best mean: the knowledge gradient.

    An experiment at x under P moves the mean of every design i in use under Q along a line:

    .. math:: \mu_i + b_i Z, \qquad
              b_i = \frac{\mathrm{Cov}(F_Q(x_i), F_P(x))}{\sqrt{\mathrm{Var} F_P(x) + \sigma^2(x)}}

    What is recommended afterwards is the best of the known designs and of x itself. The gain is
    large where a design may turn out better than the best one so far. It is also large at good
    designs that are not known well: the experiment then confirms one of them, or refutes it.
    """

    n_steps = 20
    """Steps that a search takes from each start: the slope jumps where the best design changes."""

    def __init__(
        self,
        model: UncertainInputGP,
        known: Float[Tensor, "c m"],
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
        self.posterior = Conditioned(model, self.experiments)
        with torch.no_grad():
            choices = self.posterior.features(known)  # (c, f)
            k = self.posterior.to_observed(choices)  # (c, n)
            self.means = self.posterior.mean(known, k)  # (c,)
            self.solved = self.posterior.solve(k.mT)  # (K + Σ)⁻¹ kᵀ, (n, c)
            self.compared = torch.cat([self.posterior.f, choices])  # (n + c, f)

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the gain of each experiment of a batch, in units of the transformed values."""
        posterior, n = self.posterior, len(self.solved)
        f = posterior.features(X, self.experiments)
        to_observed, to_known = posterior.prior(f, self.compared).tensor_split([n], -1)
        # Cov(F_Q(x_i), F_P(x)) = k̂(x, x_i) - k(x) (K + Σ)⁻¹ k(x_i)ᵀ
        shifts = to_known - to_observed @ self.solved  # (..., 1, c)
        variance = posterior.variance(f, to_observed)  # (..., 1)
        mean, own = self._in_use(X, f, to_observed, variance)
        scatter = (variance + posterior.noise_of(X, f, self.experiments)).sqrt()
        a = torch.cat([self.means.expand(shifts.shape), mean.unsqueeze(-1)], dim=-1)
        b = torch.cat([shifts, own.unsqueeze(-1)], dim=-1) / scatter.unsqueeze(-1)
        return gain_of_lines(a, b).squeeze(-1)

    def _in_use(
        self, X: Tensor, f: Tensor, to_observed: Tensor, variance: Tensor
    ) -> tuple[Float[Tensor, "*batch 1"], Float[Tensor, "*batch 1"]]:
        """Return the mean of x itself in use, and its covariance with the experiment."""
        posterior = self.posterior
        if self.same:
            return posterior.mean(X, to_observed), variance
        used = posterior.features(X)
        k = posterior.to_observed(used)
        covariance = posterior.covariance(posterior.prior(used, f), k, to_observed)  # (..., 1, 1)
        return posterior.mean(X, k), covariance.squeeze(-1)


class InformationAbout(AcquisitionFunction):
    r"""Which share of the variance of one design in use an experiment would take away.

    .. math:: \sum_j \frac{\mathrm{Cov}(F_{jQ}(x^*), F_{jP}(x))^2}
              {\mathrm{Var}\, F_{jQ}(x^*) \; (\mathrm{Var}\, F_{jP}(x) + \sigma_j^2(x))}

    The numerator over the second factor is the drop in the variance of the expected value of
    :math:`x^*`, used under Q, after one experiment at x under P; the sum runs over all outcomes. If
    P equals Q, an experiment at :math:`x^*` itself serves as well. If they differ, such an
    experiment may be of no use.
    """

    n_steps = 20
    """Steps that a search takes from each start; every step needs the models of all outcomes."""

    def __init__(
        self,
        models: Sequence[UncertainInputGP],
        design: Float[Tensor, "1 m"],
        deployment: InputUncertainty,
        experiments: InputUncertainty,
    ) -> None:
        """Score experiments, run under ``experiments``, for a design used under ``deployment``.

        Args:
            models: One of every outcome.
            design: The design to learn about, x*.
            deployment: Q.
            experiments: P.
        """
        super().__init__(model=models[0])
        self.models = ModuleList(models)
        self.design = design
        self.deployment, self.experiments = deployment, experiments

    def forward(self, X: Float[Tensor, "*batch 1 m"]) -> Float[Tensor, "*batch"]:
        """Return the share for each experiment of a batch, summed over outcomes."""
        # F_Q(x*) and F_P(x), jointly
        both = torch.cat([self.design.expand_as(X), X], dim=-2)  # (..., 2, m)
        return torch.stack([self._share(model, both, X) for model in self.models]).sum(0)

    def _share(self, model: Any, both: Tensor, X: Tensor) -> Tensor:
        posterior = model.posterior(both, uncertainty=[self.deployment, self.experiments])
        covariance = posterior.distribution.covariance_matrix  # (..., 2, 2)
        noise = model.noise_variance(X, self.experiments).squeeze(-1)
        # Cov(F_Q(x*), F_P(x))² / Var F_Q(x*) (Var F_P(x) + σ²(x))
        whole = covariance[..., 0, 0] * (covariance[..., 1, 1] + noise)
        return cast(Tensor, covariance[..., 0, 1].square() / whole.clamp_min(1e-300))
