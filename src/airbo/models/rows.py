"""Rows of the training data: the ``train_inputs`` of a surrogate.

There are one, two or five tensors:

- the designs, (n, d);
- the numbers of their uncertainties, (n, 1), if there are several uncertainties;
- the number of observations of a row; the sum of their squared deviations from their mean; and the
  variance of the noise of each observation, or -1 where it is not known; (n, 1) each, if
  replicates were folded or some noise is known.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def packed(inputs: Sequence[Tensor]) -> Float[Tensor, "*batch n c"]:
    """Return designs with the column of uncertainty numbers, if there is one."""
    # (x, number of P)
    return inputs[0] if len(inputs) == 1 else torch.cat([*inputs[:2]], dim=-1)


def counts(inputs: Sequence[Tensor]) -> Float[Tensor, "*batch n"] | None:
    """Return the number of observations of every row; None: one each."""
    return inputs[2].squeeze(-1) if len(inputs) > 2 else None


def known_noise(inputs: Sequence[Tensor]) -> Float[Tensor, "*batch n"] | None:
    """Return the known variances of the noise of every row; None: all are learned."""
    return inputs[4].squeeze(-1) if len(inputs) > 4 else None


def unpacked(
    X: Float[Tensor, "*batch n c"],
    d: int,
    n_inputs: int = 5,
    noise: Float[Tensor, "*batch n"] | None = None,
) -> list[Tensor]:
    """Return single observations in the form of training data with ``n_inputs`` tensors."""
    # (x, number, c = 1, S = 0, σ² or -1)
    zero = torch.zeros_like(X[..., :1])
    numbers = X[..., d:] if X.shape[-1] > d else zero
    known = zero - 1 if noise is None else noise.expand(X.shape[:-1]).unsqueeze(-1)
    return [X[..., :d], numbers, zero + 1, zero, known][:n_inputs]


def given(params: Sequence[Any]) -> Sequence[Tensor]:
    """Return the tensors that GPyTorch passes to a likelihood, in a list or one by one."""
    return params[0] if params and isinstance(params[0], list | tuple) else params


def folded(
    inputs: Sequence[Tensor], Y: Float[Tensor, "n 1"], Yvar: Float[Tensor, "n 1"] | None = None
) -> tuple[tuple[Tensor, ...], Float[Tensor, "m 1"]]:
    """Replace the observations of equal rows, with equal noise, by their mean.

    Returns:
        The distinct rows in the order of their first appearance, and their mean values. If all rows
        differ and no noise is known, the arguments are returned unchanged.
    """
    # rows are equal if x, the number of P and the known σ² are
    inputs = tuple(inputs)
    known = torch.full_like(Y, -1.0) if Yvar is None else Yvar
    alike = torch.cat([packed(inputs), known], dim=-1)
    _, group = torch.unique(alike, dim=0, return_inverse=True)
    m = int(group.max()) + 1
    if m == len(Y) and Yvar is None:
        return inputs, Y
    # row g stands where its first observation stood: first_g = min {i: group_i = g}
    first = torch.full((m,), len(Y)).scatter_reduce(0, group, torch.arange(len(Y)), "amin")
    first, order = first.sort()
    group = order.argsort()[group]
    c = torch.bincount(group, minlength=m).to(Y).unsqueeze(-1)
    # ȳ = y₁ + Σ_i (y_i - y₁) / c and S = Σ_i (y_i - ȳ)² of the c observations of a row; deviations
    # from the first value, so that the mean of equal values is exact
    deviation = Y - Y[first][group]
    mean = torch.zeros_like(c).index_add(0, group, deviation) / c
    within = torch.zeros_like(c).index_add(0, group, (deviation - mean[group]).square())
    numbers = inputs[1] if len(inputs) > 1 else torch.zeros_like(Y)
    return (inputs[0][first], numbers[first], c, within, known[first]), Y[first] + mean
