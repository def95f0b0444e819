"""Quantile functions that PyTorch lacks, with finite gradients for their shape parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor
from torch.autograd.function import once_differentiable

_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # best relative step of a central difference


def beta_quantile(
    u: Float[Tensor, "*#shape"], a: Float[Tensor, "*#shape"], b: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Return the u-quantile of Beta(a, b)."""
    return _Quantile.apply(_beta, u, a, b)


def chi_squared_quantile(
    u: Float[Tensor, "*#shape"], df: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Return the u-quantile of the chi-squared distribution with df degrees of freedom."""
    return _Quantile.apply(_chi_squared, u, df)


def _beta(u: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(special.betaincinv(a, b, u))


def _chi_squared(u: np.ndarray, df: np.ndarray) -> np.ndarray:
    return np.asarray(2 * special.gammaincinv(df / 2, u))


class _Quantile(torch.autograd.Function):
    """A quantile function from SciPy; shape parameters get central differences as gradients.

    The uniform numbers ``u`` are constants and get no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, quantile: Callable[..., np.ndarray], u: Tensor, *shapes: Tensor
    ) -> Tensor:
        ctx.quantile = quantile
        ctx.save_for_backward(u, *shapes)
        return _call(quantile, u, shapes)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, *shapes = ctx.saved_tensors
        grads: list[Tensor | None] = [None, None]
        for i, shape in enumerate(shapes):
            if not ctx.needs_input_grad[i + 2]:
                grads.append(None)
                continue
            # ∂q/∂a = (q(a + h) - q(a - h)) / 2h
            h = _STEP * shape.double()
            up, down = (
                _call(ctx.quantile, u.double(), [*shapes[:i], moved, *shapes[i + 1 :]])
                for moved in (shape.double() + h, shape.double() - h)
            )
            slope = torch.nan_to_num((up - down) / (2 * h), nan=0.0, posinf=0.0, neginf=0.0)
            grads.append((grad * slope.to(grad)).sum_to_size(shape.shape))
        return tuple(grads)


def _call(quantile: Callable[..., np.ndarray], u: Tensor, shapes: Any) -> Tensor:
    arrays = [t.detach().double().cpu().numpy() for t in (u, *shapes)]
    return torch.from_numpy(quantile(*arrays)).to(u)
