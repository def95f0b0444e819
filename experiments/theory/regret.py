"""Bounds on the cumulative regret."""

import math
from dataclasses import dataclass

import torch
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor

from airbo.problems import Problem
from airbo.theory import information_gains, rkhs_norm, ucb_beta
from experiments.subjects.internals import training


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

    This form holds for the theorem's noise variance 1 + 2/n and a kernel of at most 1. Otherwise,
    4 (n + 2) becomes :math:`2 n v / \log(1 + v/\sigma^2)`, with v the largest variance.

    Args:
        gains: Information gain after 1, 2, ... observations.
        betas: The β with which design 1, 2, ... was chosen.
        kernel_error: ``e``, the error of the estimated kernel.
        largest_value: ``M + A``: largest value of the function plus largest noise.
        noise_ratio: As in ``ucb_beta``.
        noise_variance: The noise variance of the model; by default that of the theorem.
        largest_variance: Largest value of the kernel.
    """
    n = torch.arange(1, len(gains) + 1, dtype=gains.dtype, device=gains.device)
    e, t, v = kernel_error, n - 1, largest_variance
    if noise_variance is None:
        sigma2 = 1.0  # the proof needs σ² ≥ 1 only
        per_step = 4 * (1 + 2 / n)
    else:
        sigma2 = noise_variance
        per_step = torch.full_like(n, 2 * v / math.log1p(v / sigma2))

    # Σ σ_{t-1}(x_t) ≤ √(n Σ σ²), and Σ σ² ≤ per_step · gain
    widths = (n * per_step * (gains + n**1.5 * e / (2 * sigma2))).sqrt()
    # (β_t (1 + t v/σ²) + σ_ν t^¾ √(v/σ²)) √e + (t/σ² + t² v/σ⁴) (M + A) e
    error = (
        betas * (1 + t * v / sigma2) + noise_ratio * t**0.75 * math.sqrt(v / sigma2)
    ) * math.sqrt(e) + (t / sigma2 + t**2 * v / sigma2**2) * largest_value * e
    return 2 * betas.cummax(0).values * widths + 2 * error.cumsum(0)


def cumulative_regret(designs: Float[Tensor, "n d"], problem: Problem) -> Float[Tensor, " n"]:
    r"""Return the cumulative uncertain-inputs regret after 1, 2, ... designs.

    .. math:: \tilde R_n = \sum_{t \le n} \max_x \mathbb E_{P_x} f - \mathbb E_{P_{x_t}} f
    """
    gap = problem.robust_optimum.value - problem.expected(designs)
    return (gap if problem.direction == "maximize" else -gap).cumsum(0)


@dataclass(frozen=True)
class RunRegret:
    """The cumulative regret of a run and the bounds of the theorem, step by step.

    ``regret``, ``widths`` and ``bound`` are in the units of the observed values.
    """

    regret: Float[Tensor, " n"]
    """Cumulative regret of the designs of the run, in expectation."""
    widths: Float[Tensor, " n"]
    r""":math:`2 \sum_t \beta_{t-1} \sigma_{t-1}(x_t)`: the bound before the sum is replaced."""
    bound: Float[Tensor, " n"]
    """``regret_bound`` with the gains of the run."""
    gains: Float[Tensor, " n"]
    """Information gain of the first 1, 2, ... observations."""
    betas: Float[Tensor, " n"]
    """The β of the theorem when design 1, 2, ... is chosen."""


def run_regret(
    model: GPyTorchModel,
    designs: Float[Tensor, "n d"],
    problem: Problem,
    b: float | None = None,
    noise_ratio: float = 1.0,
    delta: float = 0.1,
    n_initial: int = 0,
) -> RunRegret:
    """Compare the cumulative regret of a finished run with the bound of the theorem.

    The theorem assumes that the kernel is known. If the run learned its hyper-parameters, the bound
    is that of a run that had known the final ones from the beginning.

    Args:
        model: The model at the end of the run, with its observations in the order of the run.
        designs: The designs of these observations, in the units of the problem.
        problem: What was optimized.
        b: Bound on the norm of the expected value, see ``rkhs_norm``; by default that estimate.
        noise_ratio: As in ``ucb_beta``.
        delta: As in ``ucb_beta``.
        n_initial: How many of the first designs the acquisition did not choose. The theorem does
            not cover these. Each adds at most 2 b √v to the regret, v being the largest variance.
    """
    K, noise, _ = training(model)
    if len(designs) != len(K):
        raise ValueError(f"There are {len(designs)} designs but {len(K)} observations.")
    b = rkhs_norm(model) if b is None else b
    gains = information_gains(K, noise)
    before = torch.cat([gains.new_zeros(1), gains[:-1]])
    betas = before.new_tensor([ucb_beta(g, b, noise_ratio, delta) for g in before.tolist()])

    # gain_t - gain_{t-1} = ½ log(1 + σ²_{t-1}(x_t) / noise), solved for σ_{t-1}(x_t)
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


def _unit_of_values(model: GPyTorchModel) -> float:
    """Return the size of the model's unit of values, in the user's units."""
    transform = getattr(model, "outcome_transform", None)
    return 1.0 if transform is None else transform.stdvs.item()
