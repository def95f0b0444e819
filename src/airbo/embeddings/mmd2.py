"""The distance by itself, for people who only want that."""

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.base_kernels import RationalQuadraticSum
from airbo.embeddings.estimators import Empirical, Estimator, Nystrom
from airbo.embeddings.sampled import nystrom_weights


def mmd2(
    x: Float[Tensor, "*batch s d"],
    y: Float[Tensor, "*batch t d"],
    kernel: Kernel | None = None,
    estimator: Estimator | None = None,
) -> Float[Tensor, "*batch"]:
    """Estimate the squared MMD between two sets of samples.

    Without an estimator this is the V-statistic: biased upwards by O(1/s), but never negative and
    exactly zero when the two sets coincide. ``Empirical`` gives the paper's U-statistic: unbiased,
    sometimes negative. ``Nystrom`` gives the paper's approximation with landmarks among the
    samples. All the samples given are used, whatever number the estimator names for models.

    Args:
        x: Samples of the first distribution.
        y: Samples of the second distribution.
        kernel: The base kernel; by default the paper's sum of rational quadratics with length
            scale 1.
        estimator: None, ``Empirical(...)`` or ``Nystrom(...)``.

    Returns:
        One estimate per batch.
    """
    _check_samples("x", x, at_least=2 if isinstance(estimator, Empirical) else 1)
    _check_samples("y", y, at_least=2 if isinstance(estimator, Empirical) else 1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x has {x.shape[-1]} columns but y has {y.shape[-1]}.")
    kernel = (RationalQuadraticSum(1.0) if kernel is None else kernel).to(x)
    if estimator is None:
        return _v_statistic(x, y, kernel)
    if isinstance(estimator, Empirical):
        return _u_statistic(x, y, kernel)
    if isinstance(estimator, Nystrom):
        return _nystrom(x, y, kernel, estimator)
    raise TypeError(f"mmd2 takes Empirical, Nystrom or None as estimator, got {estimator!r}.")


def _v_statistic(x: Tensor, y: Tensor, kernel: Kernel) -> Tensor:
    k_xx, k_yy, k_xy = (
        _dense(kernel, a, b).mean(dim=(-2, -1)) for a, b in ((x, x), (y, y), (x, y))
    )
    return k_xx + k_yy - 2 * k_xy  # ‖μ_x − μ_y‖²


def _u_statistic(x: Tensor, y: Tensor, kernel: Kernel) -> Tensor:
    def within(z: Tensor) -> Tensor:  # Σ_{i≠j} k(z_i, z_j) / s (s - 1)
        K, s = _dense(kernel, z, z), z.shape[-2]
        return (K.sum(dim=(-2, -1)) - K.diagonal(dim1=-2, dim2=-1).sum(-1)) / (s * (s - 1))

    return within(x) + within(y) - 2 * _dense(kernel, x, y).mean(dim=(-2, -1))


def _nystrom(x: Tensor, y: Tensor, kernel: Kernel, estimator: Nystrom) -> Tensor:
    z_x, z_y = (s[..., estimator.landmarks(s.shape[-2]).to(s.device), :] for s in (x, y))
    a_x, a_y = nystrom_weights(kernel, z_x, x), nystrom_weights(kernel, z_y, y)

    # ‖Σ α k(u, ·) − Σ β k(v, ·)‖² as one quadratic form
    points, weights = torch.cat([z_x, z_y], dim=-2), torch.cat([a_x, -a_y], dim=-1)
    return torch.einsum("...i,...ij,...j->...", weights, _dense(kernel, points, points), weights)


def _dense(kernel: Kernel, a: Tensor, b: Tensor) -> Tensor:
    return kernel(a, b).to_dense()


def _check_samples(name: str, samples: Tensor, at_least: int) -> None:
    if samples.dim() < 2 or samples.shape[-2] < at_least:
        raise ValueError(
            f"{name} must hold at least {at_least} sample(s) in rows, (..., s, d), "
            f"got shape {tuple(samples.shape)}."
        )
    if not bool(torch.isfinite(samples).all()):
        raise ValueError(f"{name} contains values that are not finite.")
