"""Errors of sampled embeddings, and the sample sizes that keep them small."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from experiments.subjects.internals import check_probability


def empirical_error(n_samples: int, epsilon: float, phi: float) -> float:
    r"""Bound the error of the empirical MMD: :math:`4 \Phi \sqrt{2 \log(6/\varepsilon) / m}`.

    It holds with probability ``1 - epsilon`` for independent samples. :math:`\Phi^2 = \max k(x, x)`
    is 5 for the base kernel of the paper.
    """
    check_probability("epsilon", epsilon)
    return 4 * phi * math.sqrt(2 * math.log(6 / epsilon) / n_samples)


def samples_for(error: float, epsilon: float, phi: float) -> int:
    """Return the number of samples at which ``empirical_error`` has fallen to ``error``."""
    check_probability("epsilon", epsilon)
    return math.ceil(32 * phi**2 * math.log(6 / epsilon) / error**2)


def nystrom_error(K: Float[Tensor, "m m"], n_landmarks: int, delta: float) -> float:
    r"""Bound the error of the Nyström MMD between two distributions like this one (Lemma 1).

    .. math:: 2 \left(\frac{c_1}{\sqrt m} + \frac{c_2}{h} + \frac{c_4 \sqrt{\log(h/\delta)}}{h}
              \sqrt{\mathcal N(12 \Phi^2 \log(h/\delta) / h)}\right)

    with probability ``1 - 2 delta``. The paper defines :math:`c_4` but leaves it out of the
    formula. The bound is infinite if there are too few landmarks for the lemma to hold.

    Args:
        K: Base kernel between the m samples of one distribution.
        n_landmarks: h, the number of sub-samples.
        delta: Half the probability that the bound fails.
    """
    check_probability("delta", delta)
    m, h, log_h = len(K), n_landmarks, math.log(n_landmarks / delta)
    phi = K.diagonal().max().sqrt().item()
    if h < least_landmarks(delta, phi, covariance_norm(K)):
        return math.inf
    c1 = 2 * phi * math.sqrt(2 * math.log(6 / delta))
    c2 = 4 * math.sqrt(3) * phi * math.log(12 / delta)
    # As printed. Landmarks miss at most √(3λ), λ = 12 Φ² ln(h/δ) / h, times the mean of h
    # independent vectors of norm at most 2 Φ / √λ and variance N(λ). By Bernstein's inequality,
    # c₂ is as printed, and this constant is √2 times as large: 6 √2 Φ √ln(12/δ).
    c4 = 6 * phi * math.sqrt(math.log(12 / delta))
    dimension = effective_dimension(K, 12 * phi**2 * log_h / h)
    return 2 * (c1 / math.sqrt(m) + c2 / h + c4 * math.sqrt(log_h) / h * math.sqrt(dimension))


def least_landmarks(delta: float, phi: float, covariance_norm: float) -> int:
    r"""Return the least h of Lemma 1: :math:`h \ge \max(67, 12 \Phi^2 / \|C\|) \log(h/\delta)`."""
    factor = max(67.0, 12 * phi**2 / covariance_norm)
    h = math.ceil(factor)  # a lower bound of the solution; h / log(h / δ) grows from here on
    while h < factor * math.log(h / delta):
        h = math.ceil(factor * math.log(h / delta))
    return h


def landmarks_for(
    n_samples: int, delta: float, gamma: float | None = None, c: float = 0.0, phi: float = 1.0
) -> int:
    r"""Return how many landmarks keep the Nyström error at the order of the empirical one.

    Args:
        n_samples: m.
        delta: As in ``nystrom_error``.
        gamma: If the effective dimension grows as :math:`\mathcal N(\lambda) \le c
            \lambda^{-\gamma}`: :math:`h = m^{1/(2-\gamma)} \log(m/\delta)`. If it only grows as
            :math:`\log(1 + c/\lambda)`, leave it out:
            :math:`h = \sqrt m \log(\sqrt m \max(1/\delta, c/6\Phi^2))`.
        c: The constant of that growth.
        phi: :math:`\Phi`.
    """
    check_probability("delta", delta)
    if gamma is not None:
        return math.ceil(n_samples ** (1 / (2 - gamma)) * math.log(n_samples / delta))
    root = math.sqrt(n_samples)
    return math.ceil(root * math.log(root * max(1 / delta, c / (6 * phi**2))))


def effective_dimension(K: Float[Tensor, "m m"], regularization: float) -> float:
    r"""Return :math:`\operatorname{tr} C (C + \lambda)^{-1}` for the covariance of samples.

    Args:
        K: Base kernel between samples; the eigenvalues of C are those of K divided by m.
        regularization: The argument of :math:`\mathcal N`.
    """
    values = torch.linalg.eigvalsh(K).clamp_min(0) / len(K)
    return (values / (values + regularization)).sum().item()


def covariance_norm(K: Float[Tensor, "m m"]) -> float:
    r"""Return :math:`\|C\|`, the largest eigenvalue of the covariance of samples."""
    return torch.linalg.eigvalsh(K)[-1].item() / len(K)


def kernel_error(mmd_error: float, alpha: float, largest_mmd: float = math.inf) -> float:
    r"""Bound :math:`|e^{-\alpha M^2} - e^{-\alpha \tilde M^2}|` by the error of the MMD.

    The steepest slope of :math:`e^{-\alpha M^2}` is :math:`\sqrt{2\alpha/e}`; where no MMD exceeds
    ``largest_mmd``, :math:`\alpha |M^2 - \tilde M^2|` can be smaller.
    """
    by_slope = math.sqrt(2 * alpha / math.e) * mmd_error
    by_size = alpha * mmd_error * (2 * largest_mmd + mmd_error) if mmd_error else 0.0
    return min(1.0, by_slope, by_size)


@dataclass(frozen=True)
class SampleSizes:
    """Sample sizes at which estimated kernels do not change the order of the regret."""

    epsilon: float
    """Probability that the error of one kernel value is larger than ``kernel_error``."""
    kernel_error: float
    """Allowed error of a kernel value."""
    n_samples: int
    """Samples per design, m in the paper."""
    n_landmarks: int
    """Sub-samples per design, h in the paper."""


def sample_sizes(
    n: int, information_gain: float, delta: float = 0.1, alpha: float = 1.0, phi: float = 1.0
) -> SampleSizes:
    r"""Return the sample sizes with which the paper reaches a regret of order √n γ_n.

    .. math:: \varepsilon = \delta / n, \quad
              e_\varepsilon = n^{-5/2} \gamma_n \min(\gamma_n^{-2}, n^{-1/2})

    The paper gives orders; here their constants are 1. The number of samples m follows from
    ``empirical_error`` and ``kernel_error``, and h from ``landmarks_for``.

    Args:
        n: Number of observations.
        information_gain: :math:`\gamma_n`.
        delta: Probability that the regret bound fails because of noise. The kernel estimates may
            fail with the same probability.
        alpha: The α of the kernel :math:`\exp(-\alpha\,\mathrm{MMD}^2)`.
        phi: :math:`\Phi`, see ``empirical_error``.
    """
    check_probability("delta", delta)
    epsilon, gamma = delta / n, information_gain
    e = n**-2.5 * gamma * min(gamma**-2, n**-0.5)
    # |exp(-α M²) - exp(-α M̃²)| ≤ √(2α/e) |M - M̃|, see kernel_error
    mmd_error = e / math.sqrt(2 * alpha / math.e)
    m = samples_for(mmd_error, epsilon, phi)
    return SampleSizes(epsilon, e, m, landmarks_for(m, epsilon, phi=phi))
