"""P_x from the names of parameters to the unit cube that models see.

Notation, from names in the user's units to columns of the space and on to the unit cube:

    x   a row of columns in the user's units (d); whole numbers and categories are columns, too
    z   the same in the cube (m): every column scaled to [0, 1], linearly or on a log scale
    P   the law of x' given x;  z' = cube(x') with x' ~ P_x is its law in the cube

``by_columns`` joins uncertainties by name into one over all columns, ``in_cube`` wraps each of its
independent blocks in an ``InCube``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.space import Space
from airbo.space.cube import Axes, Cube
from airbo.uncertainty.base import InputUncertainty, base_draws
from airbo.uncertainty.columns import LogNormal
from airbo.uncertainty.composed import Affine, Product, Rounded, with_exact_rest
from airbo.uncertainty.gaussians import Mixture, Resolution
from airbo.uncertainty.kinds import group
from airbo.uncertainty.normal import Normal

ByName = (
    Mapping[str, InputUncertainty]
    | Mapping[tuple[str, ...], InputUncertainty]
    | Mapping[str | tuple[str, ...], InputUncertainty]
)
"""Uncertainties by parameter name or group of names."""
NamedUncertainty = InputUncertainty | ByName | None
"""One uncertainty over all parameters in order, or one per name or group of names; None: exact."""
MOST_OUTSIDE = 0.01
"""Share of an environment that may lie out of its bounds, as the far tails of a normal law do."""


def by_columns(space: Space, given: NamedUncertainty) -> InputUncertainty:
    """Translate names into columns; parameters that are not named are hit exactly.

    The environment has its law, unless another one is named. Its columns come last.
    """
    whole = space.whole
    laws: dict[Any, Any] = {n: e.law for n, e in space.environment.items() if e.law is not None}
    if isinstance(given, InputUncertainty):
        if space.environment and given.dim == whole.d:  # with the environment in it
            uncertainty = given
        else:
            given.check_dim(space.d)
            around = space.environment
            uncertainty = _product(whole, {space.names: given} | laws) if around else given
    elif given is None or isinstance(given, Mapping):
        named: dict[Any, Any] = dict(given or {})
        own = {name for names in named for name in group(names)}
        others = {name: law for name, law in laws.items() if name not in own}
        uncertainty = _product(whole, named | others)
    else:
        raise TypeError(
            "uncertainty must be an airbo.uncertainty, a dict of them by parameter name, or None, "
            f"got {given!r}."
        )
    for column in uncertainty.uncertain_columns(whole.d):
        if column in whole.categorical_columns:
            raise ValueError(
                f"Parameter {space.names[column]!r} is categorical: uncertainty on categories is "
                "not supported. Leave it out to have it set exactly."
            )
    uncertainty = _on_whole_numbers(whole, uncertainty)
    X = _corners(space)
    _check_rows(uncertainty, X)
    check_logs(whole, uncertainty, X)
    _check_laws(space, uncertainty, X)
    return uncertainty


def _check_laws(space: Space, uncertainty: InputUncertainty, X: Float[Tensor, "n d"]) -> None:
    """Refuse a law that takes the environment out of its bounds, or depends on the design."""
    if not space.environment:
        return
    # x and the environment e are independent: no group of dependent columns has both
    whole, own = space.whole, set(range(space.d, space.whole.d))
    for columns in uncertainty.independent_groups(whole.d):
        if own & set(columns) and not own.issuperset(columns):
            names = [whole.names[c] for c in columns]
            raise ValueError(f"No design changes the environment: {names} cannot vary together.")
    # P(e outside its bounds), counted over 512 draws
    executed = uncertainty.perturb(X[:1], base_draws(512, uncertainty.n_base(whole.d)))[0]
    for c, (name, e) in enumerate(space.environment.items(), start=space.d):
        share = ((executed[:, c] < e.low) | (executed[:, c] > e.high)).double().mean().item()
        if share > MOST_OUTSIDE:
            raise ValueError(
                f"The law of {name!r} takes it out of {e.low:g} to {e.high:g} in {share:.0%} of "
                "all cases. Widen the bounds, or limit the law with .clipped(low=..., high=...)."
            )


def without_law(space: Space, uncertainty: InputUncertainty) -> list[str]:
    """Return what of the environment has no law: nobody can say what it will be."""
    # a column of the environment without a law, and without an uncertainty that was named
    known = uncertainty.uncertain_columns(space.whole.d) if space.environment else ()
    around = enumerate(space.environment.items(), start=space.d)
    return [name for c, (name, e) in around if e.law is None and c not in known]


def _on_whole_numbers(space: Space, uncertainty: InputUncertainty) -> InputUncertainty:
    """Let whole numbers land on whole numbers within their range; nothing else changes."""
    # a block with a whole number in it is rounded in these columns
    integers = set(space.integer_columns) & set(uncertainty.uncertain_columns(space.d))
    if not integers:
        return uncertainty
    parts = uncertainty.independent_blocks(space.d)
    blocks = [_round_integers(block, own, space, integers) for block, own in parts]
    columns = [own for _, own in parts]
    return blocks[0] if len(blocks) == 1 and columns[0] == (0,) else Product(blocks, columns)


def _round_integers(
    block: InputUncertainty, own: tuple[int, ...], space: Space, integers: set[int]
) -> InputUncertainty:
    whole = tuple(i for i, c in enumerate(own) if c in integers)
    if not whole or isinstance(block, Rounded):
        return block
    # ⌊x̃ + ½⌋ within the bounds of each whole number; the other columns stay as they are
    low, high = (tuple(ends[own[i]] for i in whole) for ends in space.bounds)
    if len(whole) == 1:
        return Rounded(block, low[0], high[0], None if len(own) == 1 else whole)
    return Rounded(block, low, high, None if len(whole) == len(own) else whole)


def _check_rows(uncertainty: InputUncertainty, X: Float[Tensor, "n d"]) -> None:
    """Refuse a broken function, and one that does not look at every design by itself."""
    # the samples of a design are the same, alone and among others
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
    # log x' must exist, also for draws far out in the tails
    for column in set(space.log_columns) & set(uncertainty.uncertain_columns(space.d)):
        lowest = uncertainty.perturb(X, _wide_draws(uncertainty.n_base(space.d)))[..., column].min()
        if lowest <= 0:
            name = space.names[column]
            raise ValueError(
                f"Parameter {name!r} is logarithmic and its executed input must stay > 0, but the "
                f"uncertainty takes it to {lowest.item():.3g}. Limit the uncertainty with "
                ".clipped(low=...), or make the parameter linear."
            )


def _corners(space: Space) -> Float[Tensor, "n d"]:
    """Return designs at the bounds and between, with logarithmic parameters at their least.

    The environment has its typical value.
    """
    low, high = torch.tensor(space.bounds, dtype=torch.float64)
    X = torch.stack([low, (low + high) / 2, high])
    X[:, space.log_columns] = low[list(space.log_columns)]
    typical = torch.tensor(space.typical, dtype=torch.float64)
    return torch.cat([X, typical.expand(len(X), -1)], dim=-1)


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
        own_names = group(names)
        for name in own_names:
            if name not in space.names:
                raise ValueError(
                    f"uncertainty names an unknown parameter {name!r}{space.hint(name)}"
                )
        own = tuple(map(space.names.index, own_names))
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
    return with_exact_rest(blocks, columns, space.d)


# -- the unit cube


@lru_cache(maxsize=256)
def in_cube(space: Space, uncertainty: InputUncertainty) -> InputUncertainty:
    """Translate an uncertainty over the columns of a space into the unit cube.

    Blocks that are independent of each other are translated one by one. Categories, and columns
    that are set exactly, stay exact in the cube.
    """
    cube = Cube(space)
    return _translate(uncertainty, cube.axes, [cube.position(c) for c in range(space.d)], cube.m)


@lru_cache(maxsize=256)
def in_axes(uncertainty: InputUncertainty, axes: Axes) -> InputUncertainty:
    """Translate an uncertainty over columns into the unit cube that axes span."""
    d = len(axes.names)
    unit = (0.0,) * d, (1.0,) * d
    if (axes.low, axes.high) == unit and axes.is_linear:
        return uncertainty
    return _translate(uncertainty, axes, list(range(d)), d)


def _translate(
    uncertainty: InputUncertainty, axes: Axes, position: Sequence[int], m: int
) -> InputUncertainty:
    """Translate block by block; column c of a design is column ``position[c]`` of ``m``."""
    # P in the cube is Π_b InCube(P_b), each block at its own columns of the cube
    blocks: list[InputUncertainty] = []
    columns: list[tuple[int, ...]] = []
    for block, own in uncertainty.independent_blocks(len(position)):
        if not block.is_exact:
            blocks.append(InCube(block, axes.of(own)))
            columns.append(tuple(position[c] for c in own))
    return blocks[0] if columns == [tuple(range(m))] else with_exact_rest(blocks, columns, m)


@dataclass(frozen=True, eq=False, repr=False)
class InCube(Affine):
    """An uncertainty in user units, seen in the unit cube: z' = cube(x'), x' ~ P_x, x = cube⁻¹(z).

    The uncertainty keeps its own units, whatever it is: a constant shift of x is not a constant
    shift of log x, and an uncertainty that is a function of the design needs it in user units.
    """

    uncertainty: InputUncertainty
    """P_x in user units."""

    axes: Axes
    """How its columns are scaled."""

    @property
    def dim(self) -> int:
        return len(self.axes.names)

    @property
    def is_additive(self) -> bool:
        """Whether z' = z + δ: x' = x + δ on linear scales, log x' = log x + log ε on log scales."""
        if all(self.axes.log):
            return self.uncertainty.is_multiplicative
        return self.axes.is_linear and self.uncertainty.is_additive

    def _perturb(self, X: Tensor, base: Tensor) -> Tensor:
        # z' = cube(x') with x' ~ P_x at x = cube⁻¹(z)
        return self.axes.from_columns(self.uncertainty.perturb(self.axes.to_columns(X), base))

    def _terms(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # on linear scales, z' = (x' - low) / width
        low, width = X.new_tensor(self.axes.low), X.new_tensor(self.axes.widths)
        return self.axes.to_columns(X), (-low / width).expand_as(X), (1 / width).expand_as(X)

    def _mean(self, X: Tensor) -> Tensor:
        return super()._mean(X) if self.axes.is_linear else InputUncertainty._mean(self, X)

    def _covariance(self, X: Tensor) -> Tensor:
        linear = self.axes.is_linear
        return super()._covariance(X) if linear else InputUncertainty._covariance(self, X)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        inside = self.uncertainty.on_columns(columns)
        return None if inside is None else InCube(inside, self.axes.of(columns))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # scales grow, so z' < t where x' < cube⁻¹(t)
        limits = self.axes.to_columns(t.unsqueeze(-1)).squeeze(-1)
        return self.uncertainty.cdf(self.axes.to_columns(X), limits)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        axes = self.axes
        if axes.is_linear:
            return super()._gaussians(X, r)
        if self.is_additive and isinstance(self.uncertainty, LogNormal):
            # log x' = log x + δ: normal on the log scale
            ends = zip(axes.low, axes.high, strict=True)
            width = X.new_tensor([math.log(high / low) for low, high in ends])
            std = self.uncertainty._get("sigma", X) / width
            return Normal(std.expand_as(width))._gaussians(X, r)
        if self.uncertainty.is_additive:
            parts = self.uncertainty.landing(axes.to_columns(X), r)
            if all(part.spread is None for part in parts):  # points go where the axes take them
                return [_points(part, axes.of(part.columns)) for part in parts]
        # strata and cells are cut on the log scale, where a Gaussian stands for each of them
        return InputUncertainty._gaussians(self, X, r)


def _points(part: Mixture, axes: Axes) -> Mixture:
    # the outermost points, which hardly count, must have a logarithm, too
    least = [1e-6 * low if log else -math.inf for low, log in zip(axes.low, axes.log, strict=True)]
    means = torch.maximum(part.means, part.means.new_tensor(least))
    return replace(part, means=axes.from_columns(means))
