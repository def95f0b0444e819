r"""The operating window: how far each parameter may move while the parts stay in spec.

A design is inside where

.. math:: P_f\big(P_{x' \sim P_x}(f(x') \text{ is within limits}) \ge level\big) \ge 0.9

for all limits together. The outer probability runs over draws of f: what the model does not know
counts against a design. A box is inside where *all* its designs are so in the same draw, with the
same probability: on average over draws, the worst of many corners would look better than it is.
ICH Q8 calls the range of one parameter, with all others as they are, its proven acceptable range.

Notation: F (n d) settings in the folded cube; shares (S n) of executed inputs in spec, by S draws
of f; a box (2 d) its lower and upper corner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from airbo.measures import InSpec
from airbo.measures.capability import Capability
from airbo.measures.kinds import check_level
from airbo.measures.posterior import FOR_SHARES, Effort, MeasureModel
from airbo.optimizer import Optimizer
from airbo.optimizer.goal import OutcomeModel
from airbo.space import Design, Space
from airbo.space.cube import Section
from airbo.uncertainty import base_draws

EFFORT_OF_WINDOW = Effort(n_pairs=64, n_executed=128)
"""How finely probabilities are worked out at the hundreds of designs of a window."""
MAX_AT_ONCE = 2**18
"""Values of f that are worked out at a time."""
N_VALUES = 31
"""Designs along each parameter."""
N_HALVINGS = 6
"""How often the step of the grid is halved to find the end of a range."""
N_INSIDE, MAX_CORNERS = 16, 64
"""Designs inside a box, and corners of it, that have to be in the window."""
CONFIDENCE = 0.9
"""How sure the model has to be that a setting, or a whole box, is in spec as often as asked for."""
N_CONFIRMED = 128
"""Designs with which the joint window is checked at the end."""


@dataclass(frozen=True)
class Along:
    """The probability of being in spec along one parameter, all others as they are."""

    values: tuple[Any, ...]
    """Values of the parameter, in the user's units."""
    probabilities: tuple[float, ...]
    lower: tuple[float, ...]
    """What the probability exceeds with a confidence of 0.9."""


@dataclass(frozen=True)
class OperatingWindow:
    """The settings around a design that keep all limits with a probability.

    f is not known exactly: the model has to be 90% sure that a setting is in the window, and that
    all settings of the joint window are in it at once.
    """

    design: Design
    level: float
    """The required probability of being in spec."""
    probability: float
    """That of the design itself, as the model expects it."""
    confidence: float
    """Probability that the design is in spec as often as asked for."""
    alone: Mapping[str, tuple[Any, ...]]
    """The lowest and the highest value of each parameter, all others as in the design; for a
    category, the choices. Empty where the model is not sure of the design itself."""
    jointly: Mapping[str, tuple[Any, ...]]
    """Ranges that hold together: all parameters may be anywhere in theirs at once."""
    along: Mapping[str, Along] = field(repr=False)
    """The probabilities from which the ranges of single parameters were read."""
    tied: tuple[str, ...] = ()
    """Parameters of an equality constraint. None of them can move while the others stay, so their
    ranges are single values."""


@dataclass(frozen=True)
class Specification:
    """All limits of designs in use; each has a model of its own."""

    cube: Section
    limits: Sequence[MeasureModel]
    """Their measures are ``InSpec``, in the units of their models."""

    @classmethod
    def of(
        cls,
        optimizer: Optimizer,
        measure: InSpec | None = None,
        effort: Effort = EFFORT_OF_WINDOW,
        given: Mapping[str, Any] | None = None,
    ) -> "Specification":
        """Take the limits of an optimizer; see ``operating_window``."""
        # S draws of every limited value, joint over designs, independent between values
        limited = _limited(optimizer, measure, given)
        cube = limited[0].surrogate.points.cube
        return cls(cube, [o.draws(effort) for o in limited])

    def shares(self, F: Float[Tensor, "n d"]) -> Float[Tensor, "S n"]:
        """Return P(in spec) at points of the folded cube, by every draw of f."""
        # (1/s) Σ 1[f(x') is within all limits]; 0 where a constraint is not met
        size = max(1, MAX_AT_ONCE // max(limit.n_values for limit in self.limits))
        with torch.no_grad():
            parts = [self._portion(some) for some in F.split(size)]
        found = torch.cat(parts, dim=-1)
        space = self.cube.space
        if not space.constraints:
            return found
        meets = space.polytope.holds(self.cube.axes.to_columns(F).numpy())
        return found * torch.from_numpy(meets).to(found)

    def probability(self, F: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Return P(in spec) at points of the folded cube, on average over draws of f."""
        return self.shares(F).mean(0)

    def at_design(self, design: Design) -> float:
        """Return P(in spec) of one design; of a single limit, the share of its ``Capability``."""
        F = self.cube.folded(design)
        if len(self.limits) > 1:
            return self.probability(F).item()
        [limit] = self.limits
        assert isinstance(limit.measure, InSpec)
        with torch.no_grad():
            values = limit.values(self.cube.unfold(F))[:, 0]  # (draws, s)
        return Capability.of(limit.measure, values).share

    def _portion(self, F: Float[Tensor, "n d"]) -> Float[Tensor, "S n"]:
        # 1[f(x') is within limit 1] · 1[within limit 2] · ..., in the same draw of f
        within: Tensor | None = None
        for limit in self.limits:
            assert isinstance(limit.measure, InSpec)
            kept = limit.measure.keeps(limit.values(self.cube.unfold(F)))  # (draws, n, s)
            within = kept if within is None else within & kept
        assert within is not None
        return within.double().mean(-1)


def operating_window(
    optimizer: Optimizer,
    level: float = 0.95,
    design: Mapping[str, Any] | None = None,
    measure: InSpec | None = None,
    given: Mapping[str, Any] | None = None,
) -> OperatingWindow:
    """Return how far parameters may move while parts stay in spec.

    Args:
        optimizer: It is not changed.
        level: Probability of being in spec, all limits together.
        design: The design in the middle; by default the recommended one.
        measure: The limits; by default those that the optimizer decides by.
        given: What you know of its use, by name; as for ``Optimizer.recommend``.
    """
    check_level(level)
    with optimizer.exclusive():
        plain = design_in_use(optimizer, design, given)
        spec = Specification.of(optimizer, measure, given=given)
        cube = spec.cube
        at = cube.folded(plain)
        # the design itself is judged by the draws that its capability is read off
        finer = Specification.of(optimizer, measure, FOR_SHARES, given)
        there, sure = finer.at_design(plain), _confidence(finer.shares(at), level)
        search = _Search(spec, at[0], level)
        along = {name: search.along(c) for c, name in enumerate(cube.space.names)}
        if sure < CONFIDENCE:
            return OperatingWindow(plain, level, there, sure, {}, {}, along)
        alone = search.alone()
        single, joint = search.in_units(alone), search.in_units(search.jointly(alone))
        choices = {name: search.choices(c) for c, name in enumerate(cube.space.names)}
        single |= {name: own for name, own in choices.items() if own is not None}
        return OperatingWindow(plain, level, there, sure, single, joint, along, _tied(cube.space))


def _confidence(shares: Float[Tensor, "S n"], level: float) -> float:
    """Return the probability that all settings are in spec as often as asked for."""
    # (1/S) #{i : min_n share_i(x_n) >= level}
    return (shares >= level).all(-1).double().mean().item()


def design_in_use(
    optimizer: Optimizer, design: Mapping[str, Any] | None, given: Mapping[str, Any] | None
) -> Design:
    """Return a design as plain values; by default the recommended one."""
    if design is None:
        return optimizer.recommend(given=given).design
    return optimizer.space.checked(design, allow_outside=True)


def _limited(
    optimizer: Optimizer, measure: InSpec | None, given: Mapping[str, Any] | None
) -> list[OutcomeModel]:
    """Return the models of all values that have limits."""
    if measure is not None:
        if len(optimizer.outcomes) > 1:
            raise ValueError("With several outcomes, the limits are theirs: leave measure out.")
        return [optimizer.outcome_model(measure=measure, given=given)]
    # limits of outcomes, and of the only outcome if it counts by a share in spec
    models = optimizer.outcome_models(given)
    limited = [o for o in models if o.is_limit]
    if len(optimizer.outcomes) == 1:
        limited += [o for o in models if isinstance(o.measure, InSpec) and not o.is_limit]
    if not limited:
        raise ValueError(
            "There are no limits to keep. Use measure=measures.InSpec(...), or outcomes with "
            "AtMost, AtLeast or Between."
        )
    return limited


def _tied(space: Space) -> tuple[str, ...]:
    """Return the parameters that stand in an equality constraint."""
    # w_c ≠ 0 in some equality
    equalities = [limit.weights for limit in space.limits if limit.is_equality]
    return tuple(n for c, n in enumerate(space.names) if any(own[c] != 0 for own in equalities))


Box = Float[Tensor, "2 d"]
"""The lower and the upper end of each parameter, in the folded cube."""


class _Search:
    """Looks for the ends of ranges around one point of the folded cube."""

    def __init__(self, spec: Specification, at: Float[Tensor, " d"], level: float) -> None:
        self.spec, self.at, self.level = spec, at, level
        self.cube, space = spec.cube, spec.cube.space
        self.numbers = [c for c in range(space.d) if c not in space.categorical_columns]
        self._grids = [self._grid(c) for c in range(space.d)]
        lines = torch.cat([self._line(c, grid) for c, grid in enumerate(self._grids)])
        sizes = [len(grid) for grid in self._grids]
        self._found = spec.shares(lines).split(sizes, dim=-1)  # (S, k) of each parameter

    def _inside(self, shares: Float[Tensor, "S k"]) -> Bool[Tensor, " k"]:
        """Say of each setting whether the model is sure enough of it."""
        return (shares >= self.level).double().mean(0) >= CONFIDENCE

    def _grid(self, column: int) -> Float[Tensor, " k"]:
        """Return values of a parameter, that of the design among them."""
        if column in self.cube.space.n_values and self.cube.space.n_values[column] <= N_VALUES:
            own = torch.tensor(self.cube.values(column), dtype=torch.float64)
        else:
            own = torch.linspace(0, 1, N_VALUES, dtype=torch.float64)
        # the design itself is one of the values
        return torch.cat([own, self.at[[column]]]).unique()

    def _line(self, column: int, values: Tensor) -> Float[Tensor, "k d"]:
        # the setting itself, moved along one column
        F = self.at.repeat(len(values), 1)
        F[:, column] = values
        return F

    def _decoded(self, column: int, values: Float[Tensor, " k"]) -> tuple[Any, ...]:
        X = self.cube.axes.to_columns(self._line(column, values))
        name = self.cube.space.names[column]
        parameter = self.cube.space.parameters[name]
        return tuple(parameter.decode(v) for v in X[:, column].tolist())

    def along(self, column: int) -> Along:
        """Return what is known along one parameter."""
        # mean over draws of f, and the quantile that 90% of them exceed
        values = self._decoded(column, self._grids[column])
        shares = self._found[column]
        lower = shares.quantile(1 - CONFIDENCE, dim=0)
        return Along(values, tuple(shares.mean(0).tolist()), tuple(lower.tolist()))

    # -- one parameter at a time

    def alone(self) -> Box:
        """Return how far each number can go while all others stay."""
        # along the grid from the design, to the last value inside and the first outside
        box = self.at.repeat(2, 1)
        outside = box.clone()
        for c in self.numbers:
            grid, inside = self._grids[c], self._inside(self._found[c])
            start = int((grid - self.at[c]).abs().argmin())
            for side, step in enumerate((-1, 1)):
                i = start
                while 0 <= i + step < len(grid) and inside[i + step]:
                    i += step
                box[side, c] = grid[i]
                outside[side, c] = grid[min(max(i + step, 0), len(grid) - 1)]
        return self._between(box, outside)

    def _between(self, box: Box, outside: Box) -> Box:
        """Move all ends towards the first value that is outside, by halving."""
        steps = [c for c in self.cube.space.n_values if self.cube.space.n_values[c] <= N_VALUES]
        outside[:, steps] = box[:, steps]
        # bisection of all ends at once
        for _ in range(N_HALVINGS):
            middle = (box + outside) / 2
            F = self.at.repeat(2 * len(self.numbers), 1)
            rows = [(side, c) for side in (0, 1) for c in self.numbers]
            for row, (side, c) in zip(F, rows, strict=True):
                row[c] = middle[side, c]
            kept = self._inside(self.spec.shares(F))
            for (side, c), is_in in zip(rows, kept.tolist(), strict=True):
                (box if is_in else outside)[side, c] = middle[side, c]
        return box

    # -- all parameters together

    def jointly(self, alone: Box) -> Box:
        """Return a large box inside the ranges of single parameters.

        All sides shrink alike until the box fits; then each grows as far as it can.
        """
        # ends are at + share · room, with shares from 0 (the design) to 1 (the range alone)
        room = alone - self.at
        shares = torch.zeros_like(room)
        shares = self._grown(shares, torch.ones_like(shares), room)
        for c in self.numbers:
            for side in (0, 1):
                if room[side, c] != 0:
                    wanted = shares.clone()
                    wanted[side, c] = 1.0
                    shares = self._grown(shares, wanted, room)
        while not self._fits(self.at + shares * room, N_CONFIRMED):
            shares = 0.95 * shares
            if shares.amax() < 1e-3:
                return self.at.repeat(2, 1)
        return self.at + shares * room

    def _grown(self, shares: Tensor, wanted: Tensor, room: Tensor) -> Tensor:
        """Grow one box towards a larger one as far as it fits."""
        if self._fits(self.at + wanted * room):
            return wanted
        # bisection between a box that fits and one that does not
        fits, fails = 0.0, 1.0
        for _ in range(N_HALVINGS):
            middle = (fits + fails) / 2
            if self._fits(self.at + (shares + middle * (wanted - shares)) * room):
                fits = middle
            else:
                fails = middle
                if fits == 0 and middle < 0.1:
                    break  # there is no room on this side
        return shares + fits * (wanted - shares)

    def _fits(self, box: Box, n: int = N_INSIDE) -> bool:
        """Say whether corners of a box, and designs inside it, are in the window."""
        # P(in spec) >= level at low + u (high - low), for corners and points u inside
        shares = self.spec.shares(box[0] + self._template(n) * (box[1] - box[0]))
        return _confidence(shares, self.level) >= CONFIDENCE

    def _template(self, n: int) -> Float[Tensor, "k d"]:
        d = len(self.at)
        return torch.cat([_corners(d, self.numbers), base_draws(n, d)])

    # -- in the user's units

    def in_units(self, box: Box) -> dict[str, tuple[Any, ...]]:
        """Return the ends of all ranges; whole numbers and steps are rounded inwards."""
        found: dict[str, tuple[Any, ...]] = {}
        # values of a grid that lie inside [low, high]; if none does, the design's own
        for c, name in enumerate(self.cube.space.names):
            ends = box[:, c]
            if c in self.cube.space.n_values:
                values = torch.tensor(self.cube.values(c), dtype=torch.float64)
                own = values[(values >= ends[0] - 1e-9) & (values <= ends[1] + 1e-9)]
                ends = own[[0, -1]] if len(own) else self.at[[c, c]]
            found[name] = self._decoded(c, ends if c in self.numbers else ends[:1])
        return found

    def choices(self, column: int) -> tuple[Any, ...] | None:
        """Return the choices of a category that are in spec, the others as they are."""
        if column in self.numbers:
            return None
        return self._decoded(column, self._grids[column][self._inside(self._found[column])])


def _corners(d: int, numbers: Sequence[int]) -> Float[Tensor, "k d"]:
    """Return corners of the unit cube: all of them, or as many as there is time for."""
    # 2^d corners, or as many random ones and those opposite to them
    if 2 ** len(numbers) <= MAX_CORNERS:
        signs = torch.tensor(list(product((0.0, 1.0), repeat=len(numbers))), dtype=torch.float64)
    else:
        signs = base_draws(MAX_CORNERS, len(numbers)).round()
        signs = torch.cat([signs, 1 - signs])
    corners = torch.zeros(len(signs), d, dtype=torch.float64)
    corners[:, list(numbers)] = signs.reshape(len(signs), len(numbers))
    return corners
