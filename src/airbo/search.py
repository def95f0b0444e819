"""Where in the space a function of the design is largest."""

import math
import warnings
from itertools import product

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim import optimize_acqf, optimize_acqf_mixed_alternating
from jaxtyping import Float
from torch import Tensor

from airbo.coordinates import from_unit
from airbo.space import Space

N_RESTARTS, N_RAW = 8, 256
MAX_ENUMERATED = 2000
"""Spaces without continuous parameters are searched whole up to this many designs."""


def best_design(
    function: AcquisitionFunction,
    space: Space,
    exclude: Float[Tensor, "n d"] | None = None,
    start: Float[Tensor, "s d"] | None = None,
) -> Float[Tensor, "1 d"]:
    """Maximize a BoTorch acquisition over the designs of a space, in the unit cube.

    Args:
        function: A function of designs in model coordinates.
        space: Says which designs there are.
        exclude: Designs that must not be returned, unless there are no others.
        start: Designs to start the search from, besides random ones.
    """
    if space.categorical_columns:
        function = _OnUnitCube(function, space)
    Z = _search(function, space, start)
    if exclude is None or not len(exclude) or not _taken(Z, exclude).any():
        return Z
    others = _pool(space)
    free = others[~_taken(others, exclude)]
    return best_of(function, free) if len(free) else Z


def best_of(function: AcquisitionFunction, Z: Float[Tensor, "n d"]) -> Float[Tensor, "1 d"]:
    """Return the point among ``Z`` where the function is largest."""
    with torch.no_grad():
        values = torch.cat([function(part.unsqueeze(-2)) for part in Z.split(256)])
    return Z[[int(values.argmax())]]


class _OnUnitCube(AcquisitionFunction):
    """A function of model coordinates, as a function of points of the unit cube."""

    def __init__(self, function: AcquisitionFunction, space: Space) -> None:
        super().__init__(model=function.model)
        self.function = function
        self.space = space

    def forward(self, X: Tensor) -> Tensor:
        return self.function(from_unit(self.space, X))


def _search(
    function: AcquisitionFunction, space: Space, start: Tensor | None
) -> Float[Tensor, "1 d"]:
    discrete = space.discrete_values
    if len(discrete) == space.d and _size(space) <= MAX_ENUMERATED:
        return best_of(function, _pool(space))
    with warnings.catch_warnings():
        # BoTorch says when a line search ended early; the best point found is good all the same
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        if discrete:
            categories = {c: discrete[c] for c in space.categorical_columns}
            numbers = {c: v for c, v in discrete.items() if c not in categories}
            Z, _ = optimize_acqf_mixed_alternating(
                function,
                space.model_bounds,
                discrete_dims=numbers,
                cat_dims=categories,
                q=1,
                num_restarts=N_RESTARTS,
                raw_samples=N_RAW,
            )
        else:
            Z, _ = optimize_acqf(
                function, space.model_bounds, q=1, num_restarts=N_RESTARTS, raw_samples=N_RAW
            )
    found = space.round(Z.detach())
    return found if start is None else best_of(function, torch.cat([found, space.round(start)]))


def _size(space: Space) -> int:
    return math.prod(len(values) for values in space.discrete_values.values())


def _pool(space: Space) -> Float[Tensor, "n d"]:
    """Return all designs of a small discrete space, or many spread over any other."""
    if len(space.discrete_values) == space.d and _size(space) <= MAX_ENUMERATED:
        return torch.tensor(list(product(*space.discrete_values.values())), dtype=torch.float64)
    Z = torch.rand(4 * N_RAW, space.d, dtype=torch.float64)
    return space.round(Z)


def _taken(Z: Float[Tensor, "n d"], exclude: Float[Tensor, "m d"]) -> Tensor:
    return (Z.unsqueeze(-2) - exclude).abs().amax(-1).lt(1e-6).any(-1)
