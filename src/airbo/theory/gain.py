"""Information gain, the exploration weight β_n, and the rate of theorem 2.

Notation: n observations with the covariance K (n, n) of their expected values and noise variances
σ² (n,); y (n,) their values, centred; γ_n the information gain; δ the probability that a bound
fails.
"""

import math
from typing import Any

import torch
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor


def information_gain(
    K: Float[Tensor, "n n"], noise_variance: float | Float[Tensor, ""] | Float[Tensor, " n"]
) -> Float[Tensor, ""]:
    r"""Return :math:`\tfrac12 \log\det(I + \sigma^{-2} K)`."""
    return information_gains(K, noise_variance)[-1]


def information_gains(
    K: Float[Tensor, "n n"], noise_variance: float | Float[Tensor, ""] | Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """Return the information gain of the first 1, 2, ..., n observations."""
    noise = torch.as_tensor(noise_variance, dtype=K.dtype, device=K.device).expand(len(K))
    # L Lᵀ = K + σ²: the first i rows of L factorize the first i observations, so
    # ½ log det(I + σ⁻² K_i) = Σ_{j ≤ i} (log L_jj - ½ log σ_j²)
    pivots = torch.linalg.cholesky(K + noise.diag()).diagonal()
    return (pivots.log() - 0.5 * noise.log()).cumsum(0)


def max_information_gain(
    K: Float[Tensor, "c c"], n: int, noise_variance: float
) -> Float[Tensor, " n"]:
    r"""Return the gain of 1, 2, ..., n designs chosen greedily among candidates.

    Each design is the one with the largest posterior variance; it may be chosen again. The gain is
    submodular, so the largest gain :math:`\hat\gamma_n` over the candidates lies between the greedy
    gain and the greedy gain divided by :math:`1 - 1/e`.

    Args:
        K: Kernel between the candidates.
        n: How many designs to choose.
        noise_variance: Variance of an observation.
    """
    covariance, steps = K.clone(), []
    for _ in range(n):
        best = int(covariance.diagonal().argmax())
        variance = covariance[best, best].clamp_min(0)
        steps.append(0.5 * torch.log1p(variance / noise_variance))
        # posterior after one more observation: C - c cᵀ / (c_best + σ²)
        row = covariance[best].clone()
        covariance -= row.outer(row) / (variance + noise_variance)
    return torch.stack(steps).cumsum(0)


def information_gain_bound(n: int, d: int, r: int | float) -> float:
    r"""Return the rate of theorem 2, :math:`n^{d(d+1)/(r + d(d+1))} \log n`, up to its constant.

    The largest information gain grows no faster than this if the uncertainty is additive and the
    base kernel is stationary.

    Args:
        n: Number of observations.
        d: Number of parameters.
        r: How many bounded derivatives the base kernel has: 2 for a Matérn kernel with ν = 3/2,
            4 for ν = 5/2. Use ``math.inf`` for kernels that are infinitely differentiable: there
            the power of n can be made as small as you like.
    """
    for name, value, least in (("n", n, 1), ("d", d, 1), ("r", r, 0)):
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}.")
    return float(n ** (d * (d + 1) / (r + d * (d + 1))) * math.log(n))


def model_information_gain(model: GPyTorchModel) -> float:
    """Return the information gain of a fitted model's own observations."""
    K, noise, _ = training(model)
    return information_gain(K, noise).item()


def rkhs_norm(model: GPyTorchModel) -> float:
    r"""Return :math:`\sqrt{y^\top (K + \sigma^2)^{-1} K (K + \sigma^2)^{-1} y}`.

    This is the norm of the posterior mean. It estimates, from below, the bound ``b`` on the norm of
    the expected value as a function of the design. It uses the model's own kernel, with its output
    scale, and the model's own values, which are standardized.
    """
    K, noise, y = training(model)
    # w = (K + σ²)⁻¹ y, and ‖Σ w_i k(x_i, ·)‖² = wᵀ K w
    weights = torch.cholesky_solve(y.unsqueeze(-1), torch.linalg.cholesky(K + noise.diag()))
    return (weights.mT @ K @ weights).clamp_min(0).sqrt().item()


def ucb_beta(information_gain: float, b: float, noise_ratio: float, delta: float) -> float:
    r"""Return :math:`\beta_n = b + \sigma_\nu \sqrt{2 (\gamma_n + 1 - \ln\delta)}`.

    Args:
        information_gain: :math:`\gamma_n`, or the gain of the observations.
        b: Bound on the norm of the expected value.
        noise_ratio: :math:`\sigma_\nu = \sqrt{\sigma_E^2 + \sigma_\zeta^2}`, the sub-Gaussian
            constant of unseen inputs and noise together, relative to the standard deviation of the
            noise that the model assumes. In the theorem the latter is about 1.
        delta: Probability that the bound fails.
    """
    check_probability("delta", delta)
    for name, value in (("b", b), ("noise_ratio", noise_ratio), ("gain", information_gain)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and >= 0, got {value}.")
    return b + noise_ratio * math.sqrt(2 * (information_gain + 1 - math.log(delta)))


def training(model: GPyTorchModel) -> tuple[Tensor, Tensor, Tensor]:
    """Return covariance, noise variances and centred values of a model's observations."""
    inputs: Any = model.train_inputs
    with torch.no_grad():
        prior = model.forward(*inputs)
        K = prior.covariance_matrix
        observed = model.likelihood(prior, *inputs).covariance_matrix
        y = model.train_targets - prior.mean
    return K, (observed - K).diagonal(), y


def check_probability(name: str, value: float) -> None:
    """Raise ``ValueError`` unless the value lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}.")
