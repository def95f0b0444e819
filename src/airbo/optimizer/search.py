"""Where in the space a function of the design is largest."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim.optimize import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from jaxtyping import Bool, Float
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from airbo.cube import Cube
from airbo.space import Space

N_RESTARTS, N_RAW = 8, 256
MAX_STEPPED = 20
"""Numbers with more values than this are searched as if continuous, and rounded."""
MAX_ENUMERATED = 2000
"""Spaces without continuous parameters are searched whole up to this many designs."""
SAME, NEARBY = 1e-6, 0.01
"""Distances, in ranges of the parameters, within which designs count as the same, and as alike."""


def best_design(
    function: AcquisitionFunction,
    space: Space,
    exclude: Float[Tensor, "n {space.d}"] | None = None,
    avoid: Float[Tensor, "m {space.d}"] | None = None,
    start: Float[Tensor, "s {space.d}"] | None = None,
) -> Float[Tensor, "1 {space.d}"]:
    """Maximize a BoTorch acquisition over the designs of a space, in the unit cube.

    Args:
        function: A function of designs in model coordinates.
        space: Says which designs there are.
        exclude: Designs that must not be returned, unless there are no others.
        avoid: Designs that must not be returned, nor any near them, unless there are no others.
        start: Designs to start the search from, besides random ones.
    """
    if space.categorical_columns:
        function = _OnUnitCube(function, space)
    with _constant(function):
        Z = _search(function, space, start)
    nothing = Z[:0]
    exclude, avoid = (nothing if E is None else E for E in (exclude, avoid))
    for avoided in (avoid, nothing):
        if not _taken(Z, exclude, avoided).any():
            return Z
        free = free_designs(space, exclude, avoided)
        if len(free):
            return best_of(function, free)
    return Z


def free_designs(
    space: Space,
    exclude: Float[Tensor, "n {space.d}"],
    avoid: Float[Tensor, "m {space.d}"] | None = None,
) -> Float[Tensor, "k {space.d}"]:
    """Return designs all over the space, as points of the unit cube, that may be proposed."""
    pool = _pool(space)
    return pool[~_taken(pool, exclude, pool[:0] if avoid is None else avoid)]


def near(
    Z: Float[Tensor, "n d"], others: Float[Tensor, "m d"], distance: float = SAME
) -> Bool[Tensor, "n"]:
    """Say which points of the unit cube lie within ``distance`` of one of the others."""
    return torch.cdist(Z, others, p=math.inf).lt(distance).any(-1)


@contextmanager
def without_numerical_warnings() -> Iterator[None]:
    """Keep quiet about line searches that ended early and jitter on a diagonal.

    The best point found is good all the same.
    """
    with warnings.catch_warnings():
        for category in (BotorchWarning, NumericalWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        yield


def best_of(function: AcquisitionFunction, Z: Float[Tensor, "n d"]) -> Float[Tensor, "1 d"]:
    """Return the point among ``Z`` where the function is largest."""
    with torch.no_grad():
        values = torch.cat([function(part.unsqueeze(-2)) for part in Z.split(256)])
    return Z[[int(values.argmax())]]


@contextmanager
def _constant(function: AcquisitionFunction) -> Iterator[None]:
    """Take hyper-parameters for given: a search needs derivatives by designs only."""
    learned = [p for p in function.parameters() if p.requires_grad]
    for p in learned:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in learned:
            p.requires_grad_(True)


class _OnUnitCube(AcquisitionFunction):
    """A function of model coordinates, as a function of points of the unit cube."""

    def __init__(self, function: AcquisitionFunction, space: Space) -> None:
        super().__init__(model=function.model)
        self.function = function
        self.space = space

    def forward(self, X: Tensor) -> Tensor:
        return self.function(Cube(self.space).unfold(X))


def _search(
    function: AcquisitionFunction, space: Space, start: Tensor | None
) -> Float[Tensor, "1 d"]:
    if _is_small(space):
        return best_of(function, _pool(space))
    categories = {c: Cube(space).values(c) for c in space.categorical_columns}
    few = [c for c, n in space.n_values.items() if n <= MAX_STEPPED and c not in categories]
    numbers = {c: Cube(space).values(c) for c in few}
    if categories or numbers:
        Z, _ = optimize_acqf_mixed_alternating(
            function,
            torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, space.d),
            discrete_dims=numbers,
            cat_dims=categories,
            q=1,
            num_restarts=N_RESTARTS,
            raw_samples=N_RAW,
        )
    else:
        Z, _ = optimize_acqf(
            function,
            torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, space.d),
            q=1,
            num_restarts=N_RESTARTS,
            raw_samples=N_RAW,
        )
    found = Cube(space).round(Z.detach())
    return (
        found if start is None else best_of(function, torch.cat([found, Cube(space).round(start)]))
    )


def _is_small(space: Space) -> bool:
    """Say whether all designs can be listed."""
    counts = space.n_values
    return len(counts) == space.d and math.prod(counts.values()) <= MAX_ENUMERATED


def _pool(space: Space) -> Float[Tensor, "n d"]:
    """Return all designs of a small discrete space, or many spread over any other."""
    if _is_small(space):
        values = [Cube(space).values(column) for column in range(space.d)]
        return torch.tensor(list(product(*values)), dtype=torch.float64)
    Z = torch.rand(4 * N_RAW, space.d, dtype=torch.float64)
    return Cube(space).round(Z)


def _taken(Z: Tensor, exclude: Tensor, avoid: Tensor) -> Bool[Tensor, "n"]:
    return near(Z, exclude) | near(Z, avoid, NEARBY)
