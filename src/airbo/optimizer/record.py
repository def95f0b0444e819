"""What was asked and what came back, remembered.

Notation: Z (n m) points of the unit cube; X (n d) columns in the user's units; x_j the requested
value of parameter j, x'_j the executed one where it was measured.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import FAILED, INFEASIBLE, OK
from airbo.outcomes import FEASIBLE
from airbo.space import Design, Space
from airbo.space.cube import Section
from airbo.uncertainty import InputUncertainty

SAME = 1e-6
"""Designs closer than this, relative to the ranges of the parameters, count as the same."""


@dataclass(frozen=True)
class Observation:
    """One experiment: the requested design and its result."""

    design: Design
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """What was measured, by the names of outcomes, in the user's units; nothing if it failed."""
    executed: Mapping[str, Any] = field(default_factory=dict)
    """Measured parameters of the executed input."""
    uncertainty: InputUncertainty | None = None
    """The uncertainty of this experiment, if it differs from that of the others."""
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Known standard deviations of what was measured, by outcome; the others are learned."""

    @property
    def failed(self) -> bool:
        """Whether nothing was measured."""
        return not self.outcomes

    @property
    def value(self) -> float | None:
        """What was measured of the first outcome, or of the only one; None if it failed."""
        return next(iter(self.outcomes.values()), None)

    @property
    def value_noise(self) -> float | None:
        """The known standard deviation of that value."""
        return next((self.noise.get(name) for name in self.outcomes), None)

    @property
    def status(self) -> str:
        """The word for it in tables."""
        return INFEASIBLE if self.infeasible else FAILED if self.failed else OK


class Points:
    """Designs as points of the unit cube; each is translated once."""

    def __init__(self, space: Space, given: Mapping[str, Any] | None = None) -> None:
        """Start without any designs; what is given of them is held."""
        self.cube = Section(space, given)
        self._columns: dict[tuple[Any, ...], list[float]] = {}
        self._points: dict[tuple[Any, ...], Tensor] = {}

    def of(self, designs: Sequence[Design]) -> Float[Tensor, "n {self.cube.m}"]:
        """Return designs as points of the cube."""
        # many designs are asked about at every step, and most were translated before
        keys = [tuple(design.values()) for design in designs]
        new = {k: d for k, d in zip(keys, designs, strict=True) if k not in self._points}
        if new:
            X = self.cube.columns(new.values(), allow_outside=True)
            Z = self.cube.whole.from_columns(X)
            self._columns.update(zip(new, X.tolist(), strict=True))
            self._points.update(zip(new, Z, strict=True))
        points = [self._points[key] for key in keys]
        return torch.stack(points) if points else self.cube.whole.bounds[:0]

    def columns(self, o: Observation) -> Float[Tensor, "1 d"]:
        """Return the columns of a design, with measured values in place of the requested ones."""
        # x'_j in the place of x_j where it was measured
        self.of([o.design])
        space, row = self.cube.whole.space, [*self._columns[tuple(o.design.values())]]
        for name, value in o.executed.items():
            column = space.names.index(name)
            is_category = column in space.categorical_columns
            row[column] = space.parameters[name].encode(value) if is_category else value
        return torch.tensor([row], dtype=torch.float64)

    def landed(self, some: Sequence[Observation]) -> Float[Tensor, "n {self.cube.m}"]:
        """Return experiments as points of the cube, with what is known of where they landed."""
        # x'_j, where it is known, in the place of x_j
        Z = self.of([o.design for o in some]).clone()
        for i, o in enumerate(some):
            if o.executed:
                Z[i] = self.cube.whole.from_columns(self.columns(o))[0]
        return Z


@dataclass
class History:
    """The memory of an optimization, from which models and proposals are made."""

    points: Points
    observations: list[Observation] = field(default_factory=list)
    pending: list[Observation] = field(default_factory=list)
    """What was asked for and not told yet, with what was given of the environment."""
    n_asked: int = 0
    """How often a design was asked for."""

    def copy(self) -> "History":
        """Return an independent copy."""
        return replace(self, observations=[*self.observations], pending=[*self.pending])

    def ask(self, design: Design, given: Mapping[str, Any] | None = None) -> None:
        """Remember a design that was proposed, and what was given of the environment."""
        self.pending.append(Observation(design, executed=dict(given or {})))
        self.n_asked += 1

    def tell(self, observation: Observation) -> None:
        """Remember an observation, asked for or not."""
        self.answer(observation.design)
        self.observations.append(observation)

    def asked(self, design: Design) -> Observation | None:
        """Return the pending experiment, even if rounding has changed the last digits."""
        # the same numbers, or else the same up to rounding
        distance = self.points.cube.designs.distance
        same = (p for p in self.pending if p.design == design)
        alike = (p for p in self.pending if distance(p.design, design) < SAME)
        return next(same, None) or next(alike, None)

    def answer(self, design: Design) -> bool:
        """Remove a design from the pending ones, if it is one of them."""
        found = self.asked(design)
        if found is not None:
            self.pending.remove(found)
        return found is not None

    def of(self, outcome: str) -> "History":
        """Return the history of one outcome alone, without experiments that left it out.

        Whether designs can be used is an outcome, too: 1 or 0, where that is known.
        """
        # 1 where an experiment worked, 0 where its design could not be used
        if outcome == FEASIBLE:
            known = [o for o in self.observations if o.infeasible or not o.failed]
            own = [
                replace(o, outcomes={FEASIBLE: float(not o.infeasible)}, noise={}) for o in known
            ]
            return replace(self, observations=own)
        own = []
        # failed experiments stay: they wait for a value at their design
        for o in self.observations:
            if o.failed or [*o.outcomes] == [outcome]:
                own.append(o)
            elif outcome in o.outcomes:
                own.append(replace(o, outcomes={outcome: o.outcomes[outcome]}))
        return replace(self, observations=own)

    @property
    def knows_infeasible(self) -> bool:
        """Whether some design cannot be used."""
        return any(o.infeasible for o in self.observations)

    @property
    def known(self) -> list[Observation]:
        """Observations that have a value."""
        return [o for o in self.observations if not o.failed]

    @property
    def values(self) -> list[float]:
        """The values of known observations."""
        return [o.value for o in self.observations if o.value is not None]

    @property
    def designs(self) -> list[Design]:
        """Distinct designs that have a value."""
        return list({tuple(o.design.items()): o.design for o in self.known}.values())

    @property
    def tried(self) -> list[Design]:
        """Distinct designs with a value inside the space; if none is inside, all with a value.

        They have what is given.
        """
        # |z - ½| <= ½ in every column, and all constraints hold
        distinct = [d for d in self.designs if self.points.cube.allows(d)]
        inside = self.points.of(distinct).sub(0.5).abs().amax(-1) <= 0.5 + 1e-9
        meets = self.points.cube.designs.meets
        pairs = zip(distinct, inside, strict=True)
        return [d for d, is_in in pairs if is_in and meets(d)] or distinct

    @property
    def waiting(self) -> list[Observation]:
        """Failed and pending experiments, whose value is unknown; the latest come last."""
        return [*(o for o in self.observations if o.failed), *self.pending]

    @property
    def recently_failed(self) -> list[Design]:
        """Failed designs; each counts until as many new values have arrived as it has failures."""
        # back from the last observation: a design that failed k times waits for k new values
        recent: dict[tuple[Any, ...], Design] = {}
        n_failures = Counter(tuple(o.design.values()) for o in self.observations if o.failed)
        n_values = 0
        for o in reversed(self.observations):
            n_values += not o.failed
            key = tuple(o.design.values())
            if o.failed and key not in recent and n_values < n_failures[key]:
                recent[key] = o.design
        return list(recent.values())
