"""P_x in the unit cube: what a model sees of an uncertainty in the user's units.

z = cube(x) scales every column to [0, 1], linearly or on a log scale; z' = cube(x') with x' ~ P_x.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.space import Space
from airbo.space.cube import Axes, Cube
from airbo.uncertainty import Exact, InputUncertainty, LogNormal, Normal, Product
from airbo.uncertainty.composed import Wrapper
from airbo.uncertainty.gaussians import Mixture, Resolution, moved, split


@lru_cache(maxsize=256)
def in_cube(space: Space, uncertainty: InputUncertainty) -> InputUncertainty:
    """Translate an uncertainty over the columns of a space into the unit cube.

    Blocks that are independent of each other are translated one by one. Categories, and columns
    that are set exactly, stay exact in the cube.
    """
    cube = Cube(space)
    return _translated(uncertainty, cube.axes, [cube.position(c) for c in range(space.d)], cube.m)


@lru_cache(maxsize=256)
def in_axes(uncertainty: InputUncertainty, axes: Axes) -> InputUncertainty:
    """Translate an uncertainty over columns into the unit cube that axes span."""
    d = len(axes.names)
    unit = (0.0,) * d, (1.0,) * d
    if (axes.low, axes.high) == unit and axes.is_linear:
        return uncertainty
    return _translated(uncertainty, axes, list(range(d)), d)


def _translated(
    uncertainty: InputUncertainty, axes: Axes, position: Sequence[int], m: int
) -> InputUncertainty:
    """Translate block by block; column c of a design is column ``position[c]`` of ``m``."""
    blocks: list[InputUncertainty] = []
    columns: list[tuple[int, ...]] = []
    for block, own in uncertainty.independent_blocks(len(position)):
        if not block.is_exact:
            blocks.append(InCube(block, axes.of(own)))
            columns.append(tuple(position[c] for c in own))
    rest = tuple(sorted(set(range(m)).difference(*columns)))
    if not blocks:
        return Exact()
    if rest:
        return Product([*blocks, Exact()], [*columns, rest])
    return blocks[0] if columns == [tuple(range(m))] else Product(blocks, columns)


@dataclass(frozen=True, eq=False, repr=False)
class InCube(Wrapper):
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
        """Number of columns."""
        return len(self.axes.names)

    @property
    def is_additive(self) -> bool:
        """Whether z' = z + δ: x' = x + δ on linear scales, log x' = log x + log ε on log scales."""
        if all(self.axes.log):
            return self.uncertainty.is_multiplicative
        return self.axes.is_linear and self.uncertainty.is_additive

    def _perturb(
        self, X: Float[Tensor, "*batch n d"], base: Float[Tensor, "s r"]
    ) -> Float[Tensor, "*batch n s d"]:
        return self.axes.from_columns(self.uncertainty.perturb(self.axes.to_columns(X), base))

    def _mean(self, X: Tensor) -> Tensor:
        if not self.axes.is_linear:
            return super()._mean(X)
        return self.axes.from_columns(self.uncertainty.mean(self.axes.to_columns(X)))

    def _covariance(self, X: Tensor) -> Tensor:
        if not self.axes.is_linear:
            return super()._covariance(X)
        # Cov z' = W⁻¹ Cov x' W⁻¹ with W = diag(widths)
        width = X.new_tensor(self.axes.widths)
        return self.uncertainty.covariance(self.axes.to_columns(X)) / width.outer(width)

    def on_columns(self, columns: Sequence[int]) -> InputUncertainty | None:
        """Choose columns inside, and their axes."""
        inside = self.uncertainty.on_columns(columns)
        return None if inside is None else InCube(inside, self.axes.of(columns))

    def _scaled(self, factor: float) -> InputUncertainty:
        return replace(self, uncertainty=self.uncertainty.scaled(factor))

    def _cdf(self, X: Tensor, t: Tensor) -> Tensor:
        # scales grow, so z' < t where x' < cube⁻¹(t)
        limits = self.axes.to_columns(t.unsqueeze(-1)).squeeze(-1)
        return self.uncertainty.cdf(self.axes.to_columns(X), limits)

    def _gaussians(self, X: Tensor, r: Resolution) -> list[Mixture]:
        axes = self.axes
        if axes.is_linear:
            parts = self.uncertainty.landing(axes.to_columns(X), r)
            return [_on_linear(part, axes.of(part.columns)) for part in parts]
        if self.is_additive and isinstance(self.uncertainty, LogNormal):
            # log x' = log x + δ: normal on the log scale
            ends = zip(axes.low, axes.high, strict=True)
            width = X.new_tensor([math.log(high / low) for low, high in ends])
            std = self.uncertainty.log_std(X) / width
            return Normal(std.expand_as(width))._gaussians(X, r)
        if self.independent_columns and not self.is_additive and X.shape[-1] == 1:
            [part] = self.uncertainty.landing(axes.to_columns(X), r)
            if part.kind == 0 or part.n_components == 1:
                # the outermost points, which hardly count, must have a logarithm, too
                least = torch.tensor(axes.low, dtype=torch.float64).to(X) * 1e-6
                place = lambda x: axes.from_columns(torch.maximum(x, least))  # noqa: E731
                return [moved(split(part, r.pieces), place)]
        # strata and cells are cut on the log scale, where a Gaussian stands for each of them
        return super()._gaussians(X, r)


def _on_linear(part: Mixture, axes: Axes) -> Mixture:
    """Translate a sum from user units to linear axes of the unit cube."""
    means, spread = axes.from_columns(part.means), part.spread
    if spread is not None:
        widths = means.new_tensor(axes.widths)
        spread = spread / (widths.square() if part.kind == 1 else widths.outer(widths))
    return replace(part, means=means, spread=spread)
