"""What a row of the training data holds, besides the design: ``train_inputs`` of a surrogate.

There are one, two or four tensors:

- the designs, (n, d);
- the numbers of the uncertainties that they were made under, (n, 1), where these differ;
- how many observations a row stands for, and the sum of their squared deviations from their mean,
  (n, 1) each, where replicates were folded.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def packed(inputs: Sequence[Tensor]) -> Float[Tensor, "*batch n c"]:
    """Return designs with the column of uncertainty numbers, where there is one."""
    return inputs[0] if len(inputs) == 1 else torch.cat([*inputs[:2]], dim=-1)


def counts(inputs: Sequence[Tensor]) -> Float[Tensor, "*batch n"] | None:
    """Return how many observations every row stands for; None: one."""
    return inputs[2].squeeze(-1) if len(inputs) > 2 else None


def unpacked(X: Float[Tensor, "*batch n c"], d: int, n_inputs: int) -> list[Tensor]:
    """Return single observations in the form of training data with ``n_inputs`` tensors."""
    zero = torch.zeros_like(X[..., :1])
    numbers = X[..., d:] if X.shape[-1] > d else zero
    return [X[..., :d], numbers, zero + 1, zero][:n_inputs]


def given(params: Sequence[Any]) -> Sequence[Tensor]:
    """Return the tensors that GPyTorch passes to a likelihood, in a list or one by one."""
    return params[0] if params and isinstance(params[0], list | tuple) else params


def folded(
    inputs: Iterable[Tensor], Y: Float[Tensor, "n 1"]
) -> tuple[tuple[Tensor, ...], Float[Tensor, "m 1"]]:
    """Replace the observations of equal rows by their mean.

    Returns:
        The distinct rows in the order in which they first appear, and their mean values; just what
        was given where all rows differ.
    """
    inputs = tuple(inputs)
    _, group = torch.unique(packed(inputs), dim=0, return_inverse=True)
    m = int(group.max()) + 1
    if m == len(Y):
        return inputs, Y
    first = torch.full((m,), len(Y)).scatter_reduce(0, group, torch.arange(len(Y)), "amin")
    first, order = first.sort()
    group = order.argsort()[group]
    c = torch.bincount(group, minlength=m).to(Y).unsqueeze(-1)
    # deviations from the first value of a row, so that equal values have equal means
    deviation = Y - Y[first][group]
    mean = torch.zeros_like(c).index_add(0, group, deviation) / c
    within = torch.zeros_like(c).index_add(0, group, (deviation - mean[group]).square())
    numbers = inputs[1] if len(inputs) > 1 else torch.zeros_like(Y)
    return (inputs[0][first], numbers[first], c, within), Y[first] + mean
