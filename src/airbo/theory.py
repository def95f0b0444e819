"""The quantities of the paper's analysis, as functions; docs/theory.md explains them."""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor

# -- how much observations can tell


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
    # with L Lᵀ = K + σ², the first i rows of L belong to the first i observations
    pivots = torch.linalg.cholesky(K + noise.diag()).diagonal()
    return (pivots.log() - 0.5 * noise.log()).cumsum(0)


def max_information_gain(
    K: Float[Tensor, "c c"], n: int, noise_variance: float
) -> Float[Tensor, " n"]:
    r"""Return the gain of 1, 2, ..., n designs chosen greedily among candidates.

    Each is the one that the model knows least about, and may be chosen again. The gain is
    submodular: the largest gain :math:`\hat\gamma_n` over the candidates lies between this one and
    this one divided by :math:`1 - 1/e`.

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
        # what is left to know after one more observation
        row = covariance[best].clone()
        covariance -= row.outer(row) / (variance + noise_variance)
    return torch.stack(steps).cumsum(0)


def model_information_gain(model: GPyTorchModel) -> float:
    """Return the information gain of a fitted model's own observations."""
    K, noise, _ = _training(model)
    return information_gain(K, noise).item()


# -- how far the model may be from the truth


def rkhs_norm(model: GPyTorchModel) -> float:
    r"""Return :math:`\sqrt{y^\top (K + \sigma^2)^{-1} K (K + \sigma^2)^{-1} y}`.

    The norm of the posterior mean is an estimate, from below, of ``b``, the norm of the expected
    value as a function of the design. Kernel and values are those of the model: values
    standardized, the output scale part of the kernel.
    """
    K, noise, y = _training(model)
    weights = torch.cholesky_solve(y.unsqueeze(-1), torch.linalg.cholesky(K + noise.diag()))
    return (weights.mT @ K @ weights).clamp_min(0).sqrt().item()


def ucb_beta(information_gain: float, b: float, noise_ratio: float, delta: float) -> float:
    r"""Return :math:`\beta_n = b + \sigma_\nu \sqrt{2 (\gamma_n + 1 - \ln\delta)}`.

    Args:
        information_gain: :math:`\gamma_n`, or the gain of the observations.
        b: Bound on the norm of the expected value.
        noise_ratio: :math:`\sigma_\nu = \sqrt{\sigma_E^2 + \sigma_\zeta^2}`, the sub-Gaussian size
            of unseen inputs and noise together, in units of the standard deviation of the noise
            that the model assumes. The theorem sets that one to about 1.
        delta: Probability with which the bound may fail.
    """
    _check_probability("delta", delta)
    for name, value in (("b", b), ("noise_ratio", noise_ratio), ("gain", information_gain)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and >= 0, got {value}.")
    return b + noise_ratio * math.sqrt(2 * (information_gain + 1 - math.log(delta)))


# -- how well samples stand for a distribution


def empirical_error(n_samples: int, epsilon: float, phi: float) -> float:
    r"""Bound the error of the empirical MMD: :math:`4 \Phi \sqrt{2 \log(6/\varepsilon) / m}`.

    It holds with probability ``1 - epsilon`` for independent samples;
    :math:`\Phi^2 = \max k(x, x)`, which is 5 for the base kernel of the paper.
    """
    _check_probability("epsilon", epsilon)
    return 4 * phi * math.sqrt(2 * math.log(6 / epsilon) / n_samples)


def samples_for(error: float, epsilon: float, phi: float) -> int:
    """Return the number of samples for which ``empirical_error`` falls to ``error``."""
    _check_probability("epsilon", epsilon)
    return math.ceil(32 * phi**2 * math.log(6 / epsilon) / error**2)


def nystrom_error(K: Float[Tensor, "m m"], n_landmarks: int, delta: float) -> float:
    r"""Bound the error of the Nyström MMD between two distributions like this one (Lemma 1).

    .. math:: 2 \left(\frac{c_1}{\sqrt m} + \frac{c_2}{h} + \frac{c_4 \sqrt{\log(h/\delta)}}{h}
              \sqrt{\mathcal N(12 \Phi^2 \log(h/\delta) / h)}\right)

    with probability ``1 - 2 delta``. The paper defines :math:`c_4` and leaves it out of the
    formula. Infinite where there are too few landmarks for the lemma to say anything.

    Args:
        K: Base kernel between the m samples of one distribution.
        n_landmarks: h, the number of sub-samples.
        delta: Half the probability with which the bound may fail.
    """
    _check_probability("delta", delta)
    m, h, log_h = len(K), n_landmarks, math.log(n_landmarks / delta)
    phi = K.diagonal().max().sqrt().item()
    if h < least_landmarks(delta, phi, covariance_norm(K)):
        return math.inf
    c1 = 2 * phi * math.sqrt(2 * math.log(6 / delta))
    c2 = 4 * math.sqrt(3) * phi * math.log(12 / delta)
    c4 = 6 * phi * math.sqrt(math.log(12 / delta))
    dimension = effective_dimension(K, 12 * phi**2 * log_h / h)
    return 2 * (c1 / math.sqrt(m) + c2 / h + c4 * math.sqrt(log_h) / h * math.sqrt(dimension))


def least_landmarks(delta: float, phi: float, covariance_norm: float) -> int:
    r"""Return the least h of Lemma 1: :math:`h \ge \max(67, 12 \Phi^2 / \|C\|) \log(h/\delta)`."""
    factor = max(67.0, 12 * phi**2 / covariance_norm)
    h = math.ceil(factor)  # below the solution, and h / log(h / δ) grows from here on
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
    _check_probability("delta", delta)
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
    """What it takes for estimated kernels not to change the order of the regret."""

    epsilon: float
    """Probability with which one kernel value may be worse."""
    kernel_error: float
    """Error that a kernel value may have."""
    n_samples: int
    """Samples per design, m in the paper."""
    n_landmarks: int
    """Sub-samples per design, h in the paper."""


def sample_sizes(
    n: int, information_gain: float, delta: float = 0.1, alpha: float = 1.0, phi: float = 1.0
) -> SampleSizes:
    r"""Return the sample sizes that the paper asks for, to reach a regret of order √n γ_n.

    .. math:: \varepsilon = \delta / n, \quad
              e_\varepsilon = n^{-5/2} \gamma_n \min(\gamma_n^{-2}, n^{-1/2})

    The paper gives orders; here their constant is 1, and m follows from ``empirical_error`` and
    ``kernel_error``, h from ``landmarks_for``.

    Args:
        n: Number of observations.
        information_gain: :math:`\gamma_n`.
        delta: Probability with which the regret bound may fail because of noise; the kernel
            estimates may fail with the same.
        alpha: Of the kernel :math:`\exp(-\alpha\,\mathrm{MMD}^2)`.
        phi: :math:`\Phi`, see ``empirical_error``.
    """
    _check_probability("delta", delta)
    epsilon, gamma = delta / n, information_gain
    e = n**-2.5 * gamma * min(gamma**-2, n**-0.5)
    mmd_error = e / math.sqrt(2 * alpha / math.e)
    m = samples_for(mmd_error, epsilon, phi)
    return SampleSizes(epsilon, e, m, landmarks_for(m, epsilon, phi=phi))


# -- how much the search may cost


def regret_bound(
    gains: Float[Tensor, " n"],
    betas: Float[Tensor, " n"],
    kernel_error: float = 0.0,
    largest_value: float = 0.0,
    noise_ratio: float = 1.0,
    noise_variance: float | None = None,
    largest_variance: float = 1.0,
) -> Float[Tensor, " n"]:
    r"""Bound the cumulative uncertain-inputs regret as the proof of the main theorem does.

    .. math:: \tilde R_n \le 2 \beta_n \sqrt{4 (n + 2) (\gamma_n + \tfrac12 n^{3/2} e)}
              + 2 \sum_{t < n} \left((\beta_t (1 + t) + \sigma_\nu t^{3/4}) \sqrt e
              + (t + t^2)(M + A)\, e\right)

    That is for the theorem's noise variance 1 + 2/n and a kernel of at most 1. For other ones,
    4 (n + 2) becomes :math:`2 n v / \log(1 + v/\sigma^2)`, with v the largest variance.

    Args:
        gains: Information gain after 1, 2, ... observations.
        betas: The exploration factors with which design 1, 2, ... was chosen.
        kernel_error: ``e``, the error of the estimated kernel.
        largest_value: ``M + A``: largest value of the function plus largest noise.
        noise_ratio: As in ``ucb_beta``.
        noise_variance: That of the model; by default the theorem's.
        largest_variance: Largest value of the kernel.
    """
    n = torch.arange(1, len(gains) + 1, dtype=gains.dtype, device=gains.device)
    e, t, v = kernel_error, n - 1, largest_variance
    if noise_variance is None:
        sigma2 = 1.0  # the proof uses no more than σ² ≥ 1
        per_step = 4 * (1 + 2 / n)
    else:
        sigma2 = noise_variance
        per_step = torch.full_like(n, 2 * v / math.log1p(v / sigma2))

    # Σ σ_{t-1}(x_t) ≤ √(n Σ σ²), and Σ σ² ≤ per_step · gain
    widths = (n * per_step * (gains + n**1.5 * e / (2 * sigma2))).sqrt()
    error = (
        betas * (1 + t * v / sigma2) + noise_ratio * t**0.75 * math.sqrt(v / sigma2)
    ) * math.sqrt(e) + (t / sigma2 + t**2 * v / sigma2**2) * largest_value * e
    return 2 * betas.cummax(0).values * widths + 2 * error.cumsum(0)


@runtime_checkable
class KnownProblem(Protocol):
    """A problem whose expected values are known, as those of ``airbo.problems``."""

    @property
    def direction(self) -> str:
        """``"maximize"`` or ``"minimize"``."""

    @property
    def robust_optimum(self) -> Any:
        """The best design in expectation, with its ``value``."""

    def expected(self, X: Any) -> Any:
        """Return E f(x') at designs."""


def cumulative_regret(designs: Float[Tensor, "n d"], problem: KnownProblem) -> Float[Tensor, " n"]:
    r"""Return the cumulative uncertain-inputs regret after 1, 2, ... designs.

    .. math:: \tilde R_n = \sum_{t \le n} \max_x \mathbb E_{P_x} f - \mathbb E_{P_{x_t}} f
    """
    gap = problem.robust_optimum.value - problem.expected(designs)
    return (gap if problem.direction == "maximize" else -gap).cumsum(0)


@dataclass(frozen=True)
class RunRegret:
    """The cumulative regret of a run and what the theorem says about it, step by step.

    All are in the units of the observed values, except gains and betas.
    """

    regret: Float[Tensor, " n"]
    """What the designs of the run lost, in expectation."""
    widths: Float[Tensor, " n"]
    r""":math:`2 \sum_t \beta_{t-1} \sigma_{t-1}(x_t)`: the bound before the gain replaces sums."""
    bound: Float[Tensor, " n"]
    """``regret_bound`` with the gains of the run."""
    gains: Float[Tensor, " n"]
    """Information gain of the first 1, 2, ... observations."""
    betas: Float[Tensor, " n"]
    """What the theorem takes for β when design 1, 2, ... is chosen."""


def run_regret(
    model: GPyTorchModel,
    designs: Float[Tensor, "n d"],
    problem: KnownProblem,
    b: float | None = None,
    noise_ratio: float = 1.0,
    delta: float = 0.1,
    n_initial: int = 0,
) -> RunRegret:
    """Put the cumulative regret of a finished run beside the bound of the theorem.

    The theorem takes the kernel for known: where hyper-parameters were learned on the way, the
    bound is that of a run that had known the last ones from the beginning.

    Args:
        model: The model at the end of the run, with its observations in the order of the run.
        designs: The designs of these observations, in the units of the problem.
        problem: What was optimized.
        b: Bound on the norm of the expected value, see ``rkhs_norm``; by default that estimate.
        noise_ratio: As in ``ucb_beta``.
        delta: As in ``ucb_beta``.
        n_initial: How many of the first designs were not chosen by the acquisition. Of these the
            theorem says nothing; each can lose no more than 2 b times the largest deviation.
    """
    K, noise, _ = _training(model)
    if len(designs) != len(K):
        raise ValueError(f"There are {len(designs)} designs but {len(K)} observations.")
    b = rkhs_norm(model) if b is None else b
    gains = information_gains(K, noise)
    before = torch.cat([gains.new_zeros(1), gains[:-1]])
    betas = before.new_tensor([ucb_beta(g, b, noise_ratio, delta) for g in before.tolist()])

    # σ²_{t-1}(x_t) is what a gain is made of: ½ log(1 + σ² / noise)
    deviations = (torch.expm1(2 * (gains - before)) * noise).clamp_min(0).sqrt()
    chosen = torch.arange(len(K), device=K.device) >= n_initial
    variance = K.diagonal().max().item()
    initial = 2 * b * math.sqrt(variance) * (~chosen).to(K).cumsum(0)
    widths = initial + 2 * (betas * deviations * chosen).cumsum(0)
    bound = initial + regret_bound(
        gains,
        betas,
        noise_ratio=noise_ratio,
        noise_variance=noise.max().item(),
        largest_variance=variance,
    )
    unit = _unit_of_values(model)
    regret = cumulative_regret(designs, problem)
    return RunRegret(regret, unit * widths, unit * bound, gains, betas)


def _training(model: GPyTorchModel) -> tuple[Tensor, Tensor, Tensor]:
    """Return covariance, noise variances and centred values of a model's observations."""
    inputs: Any = model.train_inputs
    with torch.no_grad():
        prior = model.forward(*inputs)
        K = prior.covariance_matrix
        observed = model.likelihood(prior, *inputs).covariance_matrix
        y = model.train_targets - prior.mean
    return K, (observed - K).diagonal(), y


def _unit_of_values(model: GPyTorchModel) -> float:
    """Return how much of the user's units is one unit of the model's."""
    transform = getattr(model, "outcome_transform", None)
    return 1.0 if transform is None else transform.stdvs.item()


def _check_probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}.")
