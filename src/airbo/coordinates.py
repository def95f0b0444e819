"""P_x by the names of parameters, and over the columns of a space, in the user's units."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.space import Space
from airbo.uncertainty import Exact, InputUncertainty, Product, Rounded, base_draws

ByName = (
    Mapping[str, InputUncertainty]
    | Mapping[tuple[str, ...], InputUncertainty]
    | Mapping[str | tuple[str, ...], InputUncertainty]
)
"""Uncertainties by parameter name or group of names."""
NamedUncertainty = InputUncertainty | ByName | None
"""One uncertainty over all parameters in order, or one per name or group of names; None: exact."""


def by_columns(space: Space, given: NamedUncertainty) -> InputUncertainty:
    """Translate names into columns; parameters that are not named are hit exactly."""
    if given is None:
        return Exact()
    if isinstance(given, InputUncertainty):
        given.check_dim(space.d)
        uncertainty = given
    elif isinstance(given, Mapping):
        uncertainty = _product(space, given)
    else:
        raise TypeError(
            "uncertainty must be an airbo.uncertainty, a dict of them by parameter name, or None, "
            f"got {given!r}."
        )
    for column in uncertainty.uncertain_columns(space.d):
        if column in space.categorical_columns:
            raise ValueError(
                f"Parameter {space.names[column]!r} is categorical: uncertainty on categories is "
                "not supported. Leave it out to have it hit exactly."
            )
    uncertainty = _on_integers(space, uncertainty)
    X = _corners(space)
    _check_rows(uncertainty, X)
    check_logs(space, uncertainty, X)
    return uncertainty


def _on_integers(space: Space, uncertainty: InputUncertainty) -> InputUncertainty:
    """Let whole numbers land on whole numbers within their range; nothing else changes."""
    integers = set(space.integer_columns) & set(uncertainty.uncertain_columns(space.d))
    if not integers:
        return uncertainty
    parts = uncertainty.independent_blocks(space.d)
    blocks = [_rounded(block, own, space, integers) for block, own in parts]
    columns = [own for _, own in parts]
    return blocks[0] if len(blocks) == 1 and columns[0] == (0,) else Product(blocks, columns)


def _rounded(
    block: InputUncertainty, own: tuple[int, ...], space: Space, integers: set[int]
) -> InputUncertainty:
    whole = tuple(i for i, c in enumerate(own) if c in integers)
    if not whole or isinstance(block, Rounded):
        return block
    low, high = (tuple(ends[own[i]] for i in whole) for ends in space.bounds)
    if len(whole) == 1:
        return Rounded(block, low[0], high[0], None if len(own) == 1 else whole)
    return Rounded(block, low, high, None if len(whole) == len(own) else whole)


def _check_rows(uncertainty: InputUncertainty, X: Float[Tensor, "n d"]) -> None:
    """Refuse a broken function, and one that does not look at every design by itself."""
    base = base_draws(4, uncertainty.n_base(X.shape[-1]))
    together = uncertainty.perturb(X, base)
    alone = torch.cat([uncertainty.perturb(x, base) for x in X.split(1)])
    if not torch.allclose(together, alone):
        raise ValueError(
            "A design lands elsewhere when other designs are looked at with it. A function in "
            "Varying or Sampler gets many designs at once, one per row: take x[..., 0], not x[0]."
        )


def check_logs(
    space: Space, uncertainty: InputUncertainty, X: Float[Tensor, "n {space.d}"]
) -> None:
    """Refuse an uncertainty under which a design may land where a parameter has no logarithm."""
    for column in set(space.log_columns) & set(uncertainty.uncertain_columns(space.d)):
        lowest = uncertainty.perturb(X, _wide_draws(uncertainty.n_base(space.d)))[..., column].min()
        if lowest <= 0:
            name = space.names[column]
            raise ValueError(
                f"Parameter {name!r} is logarithmic and its executed input must stay > 0, but the "
                f"uncertainty takes it to {lowest.item():.3g}. Limit the uncertainty with "
                ".clipped(low=...), or make the parameter linear."
            )


def _corners(space: Space) -> Float[Tensor, "n {space.d}"]:
    """Return designs at the bounds and between, with logarithmic parameters at their least."""
    low, high = torch.tensor(space.bounds, dtype=torch.float64)
    X = torch.stack([low, (low + high) / 2, high])
    X[:, space.log_columns] = low[list(space.log_columns)]
    return X


def _wide_draws(n_base: int) -> Float[Tensor, "s {n_base}"]:
    """Return base draws that reach the tails: each number alone, and all of them together."""
    tail = 1e-5  # as far out as the nodes that models integrate with
    middle, ends = torch.full((n_base, n_base), 0.5), torch.eye(n_base, dtype=torch.bool)
    rows = [middle.masked_fill(ends, t) for t in (tail, 1 - tail)]
    rows += [torch.full((1, n_base), t) for t in (tail, 1 - tail)]
    return torch.cat([torch.cat(rows).double(), base_draws(512, n_base)])


def _product(space: Space, given: ByName) -> InputUncertainty:
    blocks, columns = [], []
    named: set[int] = set()
    for names, uncertainty in given.items():
        group = (names,) if isinstance(names, str) else tuple(names)
        own = tuple(_column(space, name) for name in group)
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(
                f"The uncertainty of {names!r} must be an airbo.uncertainty, got {uncertainty!r}."
            )
        if named & set(own) or len(set(own)) < len(own):
            raise ValueError(f"Parameter(s) {names!r} have more than one uncertainty.")
        try:
            uncertainty.check_dim(len(own))
        except ValueError as error:
            raise ValueError(f"The uncertainty of {names!r} does not fit: {error}") from None
        named |= set(own)
        blocks.append(uncertainty)
        columns.append(own)
    rest = tuple(c for c in range(space.d) if c not in named)
    if not blocks:
        return Exact()
    if rest:
        blocks.append(Exact())
        columns.append(rest)
    return Product(blocks, columns)


def _column(space: Space, name: str) -> int:
    if name not in space.names:
        raise ValueError(f"uncertainty names an unknown parameter {name!r}{space.hint(name)}")
    return space.names.index(name)
