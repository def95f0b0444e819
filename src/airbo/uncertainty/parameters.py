"""Parameters of uncertainties: numbers for constants, tensors where they change with x.

A constant is a float or nested tuples, so that it can be compared, hashed and saved. A parameter
from a function in ``Varying`` is a tensor with the leading dimensions (*batch n) of the designs.
"""

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

Numbers: TypeAlias = Any
"""A float, a (nested) tuple of floats, or a tensor; users may pass any array of numbers."""


def as_tensor(p: Numbers) -> Tensor:
    """Return the parameter as a tensor, constants in double precision."""
    return p if isinstance(p, Tensor) else torch.tensor(p, dtype=torch.float64)


def is_varying(p: Numbers, max_ndim: int) -> bool:
    """Say whether the parameter has one value per design."""
    return isinstance(p, Tensor) and p.ndim > max_ndim


def per_design(p: Numbers, X: Tensor, name: str, max_ndim: int) -> Tensor:
    """Return the parameter with the dtype and device of the designs, and its shape checked.

    A varying parameter has the leading dimensions (*batch n) of ``X``; a constant has none.
    """
    value = as_tensor(p).to(X)
    if is_varying(p, max_ndim) and value.shape[: value.ndim - max_ndim] != X.shape[:-1]:
        raise ValueError(
            f"{name} has shape {tuple(value.shape)}, which does not fit designs of shape "
            f"{tuple(X.shape)}: the leading dimensions must be {tuple(X.shape[:-1])}."
        )
    return value


def multiply(p: Numbers, factor: Any) -> Numbers:
    """Return a parameter times a factor."""
    return p * float(factor) if isinstance(p, Tensor) else (np.asarray(p) * factor).tolist()


def as_step(deviation: Tensor) -> Tensor:
    """Return the distribution function of the number 0."""
    # P(0 < t) is 1 for t > 0 and 0 elsewhere
    return (deviation > 0).to(deviation)


def normal_cdf(deviation: Tensor, std: Tensor) -> Tensor:
    """Return Φ(deviation / std), a step where the standard deviation is 0."""
    # the inner where keeps 0/0 out of gradients
    exact = std <= 0
    z = deviation / torch.where(exact, 1.0, std)
    return torch.where(exact, as_step(deviation), torch.special.ndtr(z))
