"""Parameters of uncertainties: numbers for constants, tensors where they change with x.

A constant is a float or nested tuples, so that it can be compared, hashed and saved. A parameter
from a function in ``Varying`` is a tensor with the leading dimensions (*batch n) of the designs.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

Numbers: TypeAlias = Any
"""A float, a (nested) tuple of floats, or a tensor; users may pass any array of numbers."""


def parameter(value: Any, name: str, max_ndim: int) -> Numbers:
    """Normalize what a user passed for a parameter.

    Constants become a float or (nested) tuples of floats. A tensor that requires grad, or has more
    dimensions than a constant can have, was made from designs inside ``Varying`` and stays one.

    Args:
        value: What the user passed.
        name: Its name in messages.
        max_ndim: Number of dimensions of the largest constant: 0 scalar, 1 vector, 2 matrix.
    """
    # made from designs inside Varying: it keeps its gradient
    if isinstance(value, Tensor) and (value.requires_grad or value.ndim > max_ndim):
        if not torch.isfinite(value).all():
            raise ValueError(f"{name} must be finite, got a tensor with nan or infinite entries.")
        return value if value.is_floating_point() else value.double()

    array = _as_array(value, name)
    if array.ndim > max_ndim:
        raise ValueError(
            f"{name} must have at most {max_ndim} dimensions, got an array of shape {array.shape}."
        )
    if array.size == 0:
        raise ValueError(f"{name} must not be empty.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value}.")
    return _nested_tuple(array.tolist())


def _as_array(value: Any, name: str) -> np.ndarray:
    plain = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
    try:
        array = np.asarray(plain)
        if array.dtype.kind not in "biuf":
            raise TypeError("not numeric")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be a number or an array of numbers, got {value!r}."
        ) from error


def _nested_tuple(value: Any) -> Numbers:
    return tuple(_nested_tuple(v) for v in value) if isinstance(value, list) else value


def as_tensor(p: Numbers) -> Tensor:
    """Return the parameter as a tensor, constants in double precision."""
    return p if isinstance(p, Tensor) else torch.tensor(p, dtype=torch.float64)


def ndim(p: Numbers) -> int:
    """Count the dimensions of a parameter without copying it."""
    if isinstance(p, Tensor):
        return p.ndim
    return 1 + ndim(p[0]) if isinstance(p, tuple) else 0


def is_varying(p: Numbers, max_ndim: int) -> bool:
    """Say whether the parameter has one value per design."""
    return isinstance(p, Tensor) and p.ndim > max_ndim


def check_at_least(p: Numbers, name: str, bound: float = 0.0, strict: bool = False) -> None:
    """Refuse a parameter with an entry below ``bound`` (or equal to it, if ``strict``)."""
    smallest = as_tensor(p).detach().min().item()
    if smallest < bound or (strict and smallest == bound):
        relation = ">" if strict else ">="
        raise ValueError(f"{name} must be {relation} {bound:g}, got {smallest:g}.")


def check_order(low: Numbers, high: Numbers) -> None:
    """Refuse lower limits above the upper ones."""
    lowest = as_tensor(low).detach()
    if (lowest > as_tensor(high).detach().to(lowest)).any():
        raise ValueError(f"low must be <= high, got low={low} and high={high}.")


def common_dim(parameters: Mapping[str, Numbers]) -> int | None:
    """Return the number of columns that the vectors among the parameters agree on, or None."""
    sizes = {name: as_tensor(p).shape[-1] for name, p in parameters.items() if ndim(p)}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"Parameters disagree on the number of columns: {listed}.")
    return next(iter(sizes.values()), None)


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
