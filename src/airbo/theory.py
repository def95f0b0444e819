"""The quantities of the paper's analysis, as functions; docs/theory.md explains them."""

import math
from collections.abc import Callable

import torch
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor


def information_gain(
    K: Float[Tensor, "n n"], noise_variance: float | Float[Tensor, ""]
) -> Float[Tensor, ""]:
    r"""Return :math:`\tfrac12 \log\det(I + \sigma^{-2} K)`."""
    return 0.5 * torch.logdet(torch.eye(len(K)).to(K) + K / noise_variance)


def model_information_gain(model: GPyTorchModel) -> float:
    """Return the information gain of a fitted model's own observations."""
    K, noise, _ = _training(model)
    L = torch.linalg.cholesky(K + noise.diag())
    return (L.diagonal().log().sum() - 0.5 * noise.log().sum()).item()


def rkhs_norm(model: GPyTorchModel) -> float:
    r"""Return :math:`\sqrt{y^\top (K + \sigma^2)^{-1} K (K + \sigma^2)^{-1} y}`.

    The norm of the posterior mean is an estimate, from below, of ``b``, the norm of the expected
    value as a function of the design.
    """
    K, noise, y = _training(model)
    weights = torch.cholesky_solve(y.unsqueeze(-1), torch.linalg.cholesky(K + noise.diag()))
    return (weights.mT @ K @ weights).clamp_min(0).sqrt().item()


def ucb_beta(information_gain: float, b: float, noise_ratio: float, delta: float) -> float:
    r"""Return :math:`\beta_n = b + \sigma_\nu \sqrt{2 (\gamma_n + 1 - \ln\delta)}`.

    Args:
        information_gain: :math:`\gamma_n`, or the gain of the observations.
        b: Bound on the norm of the expected value.
        noise_ratio: :math:`\sigma_\nu`, the sub-Gaussian size of noise and unseen inputs together,
            in units of the noise that the model assumes. The theorem scales that to about 1.
        delta: Probability with which the bound may fail.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}.")
    for name, value in (("b", b), ("noise_ratio", noise_ratio), ("gain", information_gain)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and >= 0, got {value}.")
    return b + noise_ratio * math.sqrt(2 * (information_gain + 1 - math.log(delta)))


def empirical_error(n_samples: int, epsilon: float, phi: float) -> float:
    r"""Bound the error of the empirical MMD: :math:`4 \Phi \sqrt{2 \log(6/\varepsilon) / m}`.

    It holds with probability ``1 - epsilon``; :math:`\Phi^2 = \max k(x, x)`.
    """
    return 4 * phi * math.sqrt(2 * math.log(6 / epsilon) / n_samples)


def samples_for(error: float, epsilon: float, phi: float) -> int:
    """Return the number of samples for which ``empirical_error`` falls to ``error``."""
    return math.ceil(32 * phi**2 * math.log(6 / epsilon) / error**2)


def nystrom_error(
    n_samples: int,
    n_landmarks: int,
    delta: float,
    phi: float,
    effective_dimension: Callable[[float], float],
) -> float:
    r"""Bound the error of the Nyström MMD between two distributions (Lemma 1).

    .. math:: 2 \left(\frac{c_1}{\sqrt m} + \frac{c_2}{h} + \frac{c_4 \sqrt{\log(h/\delta)}}{h}
              \sqrt{\mathcal N(12 K^2 \log(h/\delta) / h)}\right)

    with probability ``1 - 2 delta``, provided that there are enough landmarks
    (``enough_landmarks``). The paper defines :math:`c_4` and leaves it out of the formula.
    """
    m, h, log_h = n_samples, n_landmarks, math.log(n_landmarks / delta)
    c1 = 2 * phi * math.sqrt(2 * math.log(6 / delta))
    c2 = 4 * math.sqrt(3) * phi * math.log(12 / delta)
    c4 = 6 * phi * math.sqrt(math.log(12 / delta))
    dimension = effective_dimension(12 * phi**2 * log_h / h)
    return 2 * (c1 / math.sqrt(m) + c2 / h + c4 * math.sqrt(log_h) / h * math.sqrt(dimension))


def enough_landmarks(n_landmarks: int, delta: float, phi: float, covariance_norm: float) -> bool:
    """Say whether Lemma 1 applies to this number of landmarks."""
    least = max(67, 12 * phi**2 / covariance_norm) * math.log(n_landmarks / delta)
    return n_landmarks >= least


def landmarks_for(n_samples: int) -> int:
    r"""Return :math:`h = \sqrt m \log m`, the order that Lemma 1 asks for."""
    return math.ceil(math.sqrt(n_samples) * math.log(n_samples))


def effective_dimension(K: Float[Tensor, "m m"], regularization: float) -> float:
    r"""Return :math:`\operatorname{tr} C (C + \lambda)^{-1}` for the covariance of samples.

    Args:
        K: Base kernel between samples; the eigenvalues of C are those of K divided by m.
        regularization: The argument of :math:`\mathcal N`.
    """
    values = torch.linalg.eigvalsh(K).clamp_min(0) / len(K)
    return (values / (values + regularization)).sum().item()


def kernel_error(mmd_error: float, alpha: float, largest_mmd: float) -> float:
    r"""Bound :math:`|e^{-\alpha M^2} - e^{-\alpha \tilde M^2}|` by the error of the MMD."""
    return min(1.0, alpha * (2 * largest_mmd * mmd_error + mmd_error**2))


def regret_bound(
    gains: Float[Tensor, " n"],
    betas: Float[Tensor, " n"],
    kernel_error: float = 0.0,
    largest_value: float = 0.0,
) -> Float[Tensor, " n"]:
    r"""Bound the cumulative uncertain-inputs regret as the proof of the main theorem does.

    .. math:: \tilde R_n \le 2 \beta_n \sqrt{4 (n + 2) (2 \gamma_n + n^{3/2} e)}
              + 2 \sum_{t < n} \left(\beta_t (1 + t) \sqrt e + (t + t^2)(M + A)\, e\right)

    Args:
        gains: Information gain after 1, 2, ... observations.
        betas: The exploration factors used.
        kernel_error: ``e``, the error of the estimated kernel.
        largest_value: ``M + A``: largest value of the function plus largest noise.
    """
    n = torch.arange(1, len(gains) + 1, dtype=gains.dtype)
    e, t = kernel_error, n - 1
    exploration = 2 * betas * (4 * (n + 2) * (2 * gains + n**1.5 * e)).sqrt()
    shifted = torch.cat([betas[:1], betas[:-1]])
    slack = shifted * (1 + t) * math.sqrt(e) + (t + t**2) * largest_value * e
    return exploration + 2 * slack.cumsum(0)


def _training(model: GPyTorchModel) -> tuple[Tensor, Tensor, Tensor]:
    """Return covariance, noise variances and centred values of a model's observations."""
    was_training = model.training
    model.train()
    with torch.no_grad():
        prior = model(*model.train_inputs)
        K = prior.covariance_matrix
        observed = model.likelihood(prior, *model.train_inputs).covariance_matrix
        y = model.train_targets - prior.mean
    model.train(was_training)
    return K, (observed - K).diagonal(), y
