"""The designs that meet linear constraints: whether there are any, and the one nearest to a point.

A point is a row of columns in the user's units, where constraints are linear, also in logarithmic
parameters. Whole numbers and steps make the linear programs mixed-integer ones.

Notation
    x, X (n d)   a point, many points;  l, h (d) the bounds
    w · x <= b   a constraint, or = b; its scale s is how much w · x can vary between the bounds
    y (d)        a point in steps of its columns, or in ranges: x = l + unit y
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import Bounds, LinearConstraint, milp

from airbo.space.constraints import Constraint

FloatArray = NDArray[np.float64]

EXACT = 1e-9
"""What rounding errors may miss a constraint by, relative to how much its left side can vary."""


@dataclass(frozen=True)
class Polytope:
    """A box of columns, cut by constraints."""

    constraints: tuple[Constraint, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    steps: tuple[float | None, ...]
    """Distance between the values of each column; None: it is continuous."""

    # -- in units of the box: columns run from 0 to 1, and constraints vary by 1

    @cached_property
    def _start(self) -> FloatArray:
        return np.array(self.low)

    @cached_property
    def _width(self) -> FloatArray:
        return np.array(self.high) - self._start

    @cached_property
    def _is_stepped(self) -> NDArray[np.bool_]:
        return np.array([step is not None for step in self.steps])

    @cached_property
    def _unit(self) -> FloatArray:
        """What one unit of a variable of the linear programs is: a step, or the whole range."""
        steps = zip(self.steps, self._width, strict=True)
        return np.array([width if step is None else step for step, width in steps])

    @cached_property
    def _weights(self) -> FloatArray:
        return np.array([c.weights for c in self.constraints]).reshape(-1, len(self.low))

    @cached_property
    def _scales(self) -> FloatArray:
        return np.array([c.scale for c in self.constraints])

    @cached_property
    def _bounds(self) -> FloatArray:
        return np.array([c.bound for c in self.constraints])

    @cached_property
    def is_equality(self) -> NDArray[np.bool_]:
        """Which constraints are equalities."""
        return np.array([c.is_equality for c in self.constraints], dtype=bool)

    def misses(self, X: FloatArray) -> FloatArray:
        """Return by how much rows (n x d) miss each constraint, in units of its scale.

        Not above 0 where it holds, and 0 where an equality does.
        """
        # (w · x - b) / scale, and its size for an equality
        above: FloatArray = (X @ self._weights.T - self._bounds) / self._scales
        return np.where(self.is_equality, np.abs(above), above)

    def holds(self, X: FloatArray, slack: float = EXACT) -> NDArray[np.bool_]:
        """Say which rows (n x d) meet all constraints, bounds and steps."""
        # inside the box, on the grid, and on the right side of every constraint
        inside = (self._start - slack * self._width <= X) & (self.high + slack * self._width >= X)
        k = (X - self._start) / self._unit
        on_grid = ~self._is_stepped | (np.abs(k - np.round(k)) <= 1e-6)
        met = (self.misses(X) <= slack).all(-1) & (inside & on_grid).all(-1)
        return np.asarray(met, dtype=bool)

    @property
    def rows(self) -> list[tuple[FloatArray, float, float, bool]]:
        """Weights, bound and scale of each constraint, and whether it is an equality."""
        return [(np.array(c.weights), c.bound, c.scale, c.is_equality) for c in self.constraints]

    # -- equalities

    @cached_property
    def _pivots(self) -> list[int]:
        """Columns that follow from the others where equalities hold, one for each of them.

        Continuous ones are taken first, and those that matter most.
        """
        # A P = Q R with pivoting: every next column is the one that the others explain least
        sizes = self._width * np.where(self._is_stepped, 1e-3, 1.0)
        A = (self._weights * sizes / self._scales[:, None])[self.is_equality]
        R, order = qr(A, mode="r", pivoting=True)
        # an equality that says again what others have said leaves 0 on the diagonal
        return [int(c) for c in order[: int((np.abs(R.diagonal()) > 1e-12).sum())]]

    def solved(self, X: FloatArray) -> FloatArray:
        """Return rows (n x d) with some columns replaced so that equalities hold."""
        # W_p y_p = b - W_r x_r for the pivots p, given the rest r
        if not self._pivots:
            return X
        weights = self._weights[self.is_equality]
        rest = X.copy()
        rest[:, self._pivots] = 0.0
        right = self._bounds[self.is_equality] - rest @ weights.T
        found = np.linalg.lstsq(weights[:, self._pivots], right.T, rcond=None)[0]
        rest[:, self._pivots] = found.T
        return rest

    # -- linear programs

    def conflict(self) -> list[Constraint]:
        """Return constraints that no design can meet together; none if all can be met.

        None of them could be left out.
        """
        # leave out one constraint at a time; what can go without making the rest possible, goes
        if self._solved() is not None:
            return []
        rest = list(self.constraints)
        for constraint in self.constraints:
            fewer = [c for c in rest if c is not constraint]
            if replace(self, constraints=tuple(fewer))._solved() is None:
                rest = fewer
        return rest

    @cached_property
    def extent(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value that each column can have, as if all were continuous."""
        return self._corners.min(0), self._corners.max(0)

    def spread(self, n: int, random: np.random.Generator) -> FloatArray:
        """Draw rows (n x d), uniform as far as columns are continuous.

        Many points walk at a time. Each steps along the difference of two others, to anywhere
        between the ends of the polytope: thin ones take no longer, and equalities stay as they are.
        """
        # hit and run along differences of points: uniform in the limit, also in a thin polytope
        corners = self._corners
        X = random.dirichlet(np.full(len(corners), 0.5), max(n, 64)) @ corners
        first = np.arange(len(X)) < len(X) // 2
        for _ in range(10 * X.shape[1]):
            for half, other in ((first, ~first), (~first, first)):
                others, k = X[other], half.sum()
                pairs = [random.integers(len(others), size=k) for _ in range(2)]
                X[half] = self._stepped_along(X[half], others[pairs[0]] - others[pairs[1]], random)
        found = [self.nearest(x) for x in X[:n]]
        return np.array([x for x in found if x is not None]).reshape(-1, X.shape[1])

    def _stepped_along(
        self, X: FloatArray, D: FloatArray, random: np.random.Generator
    ) -> FloatArray:
        """Return points anywhere on the lines x + t D that are inside bounds and inequalities."""
        # x + t D meets side i at t_i = room_i / speed_i; the segment ends at the nearest of them
        inequality = ~self.is_equality
        weights, scales = self._weights[inequality], self._scales[inequality]
        room = np.hstack([X - self._start, self.high - X, self._bounds[inequality] - X @ weights.T])
        speed = np.hstack([-D, D, D @ weights.T])
        moves = np.abs(speed) > 1e-12 * np.hstack([self._width, self._width, scales])
        t = np.maximum(room, 0.0) / np.where(moves, np.abs(speed), 1.0)
        farthest = np.where(moves & (speed > 0), t, np.inf).min(-1, keepdims=True)
        nearest = -np.where(moves & (speed < 0), t, np.inf).min(-1, keepdims=True)
        ends = np.isfinite(farthest) & np.isfinite(nearest)
        share = random.random((len(X), 1))
        step = np.where(ends, nearest, 0.0) * (1 - share) + np.where(ends, farthest, 0.0) * share
        return np.asarray(X + step * D)

    @cached_property
    def _corners(self) -> FloatArray:
        """Some corners of the polytope, as if all columns were continuous."""
        # the ends in every column, and in some random directions
        relaxed = replace(self, steps=(None,) * len(self.low))
        d = len(self.low)
        costs = [*np.eye(d), *-np.eye(d), *np.random.default_rng(0).normal(size=(2 * d, d))]
        found = (relaxed._solved(cost) for cost in costs)
        return np.array([x for x in found if x is not None])

    def nearest(self, x: FloatArray, fixed: Mapping[int, float] | None = None) -> FloatArray | None:
        """Return the design that differs least from a row in all columns together.

        Args:
            x: A row of columns.
            fixed: Columns that must have a certain value.

        Returns:
            A row that meets all constraints; None if there is none with these values.
        """
        fixed = fixed or {}
        if all(x[column] == value for column, value in fixed.items()):
            if self.holds(x[None], slack=1e-6)[0]:
                x = self._exactly(np.clip(x, self._start, self.high), fixed)
            if self.holds(x[None])[0]:
                return x
        d = len(x)
        wanted = (x - self._start) / self._unit
        size = self._unit / self._width  # distances count in ranges, not in steps
        # min Σ_c |x_c - wanted_c| / range_c: minimize Σ size t subject to t >= ±(y - wanted)
        far = np.block([[np.eye(d), -np.eye(d)], [-np.eye(d), -np.eye(d)]])
        beside = LinearConstraint(far, ub=np.concatenate([wanted, -wanted]))
        found = self._solved(np.concatenate([np.zeros(d), size]), fixed, [beside])
        return None if found is None else self._exactly(found, fixed)

    def _solved(
        self,
        cost: FloatArray | None = None,
        fixed: Mapping[int, float] | None = None,
        others: Sequence[LinearConstraint] = (),
    ) -> FloatArray | None:
        """Return the row of columns with the least cost; None if there is none at all."""
        d = len(self.low)
        cost = np.zeros(d) if cost is None else cost
        extra = len(cost) - d
        low, high = np.zeros(d), np.where(self._is_stepped, np.round(self._width / self._unit), 1.0)
        for column, value in (fixed or {}).items():
            low[column] = high[column] = (value - self._start[column]) / self._unit[column]
        # in variables y that count steps or ranges: w · (low + unit y) <= b
        weights = self._weights * self._unit / self._scales[:, None]
        right = (self._bounds - self._weights @ self._start) / self._scales
        rows: list[LinearConstraint] = [*others]
        if len(right):
            left = np.where(self.is_equality, right, -np.inf)
            padded = np.hstack([weights, np.zeros((len(right), extra))])
            rows.append(LinearConstraint(padded, left, right))
        free = self._is_stepped & ~np.isin(np.arange(d), list(fixed or {}))
        found: Any = milp(
            cost,
            integrality=np.concatenate([free, np.zeros(extra)]),
            bounds=Bounds(
                np.pad(low, (0, extra)), np.pad(high, (0, extra), constant_values=np.inf)
            ),
            constraints=rows,
        )
        if found.x is None:
            return None
        y = np.where(free, np.round(found.x[:d]), np.clip(found.x[:d], low, high))
        return np.asarray(self._start + y * self._unit)

    def _exactly(self, x: FloatArray, fixed: Mapping[int, float]) -> FloatArray:
        """Take back the rounding errors of a solver, by moving continuous columns a little."""
        movable = ~self._is_stepped & ~np.isin(np.arange(len(x)), list(fixed))
        widths = np.where(movable, self._width, 0.0)
        directions = self._weights * widths**2
        lengths = (self._weights * directions).sum(-1)
        for end in (self._start, np.array(self.high)):
            x = np.where(movable & (np.abs(x - end) < 1e-12 * widths), end, x)
        # projections on one plane after the other converge to a point of all of them
        for _ in range(100):
            for j in np.flatnonzero((self.misses(x[None])[0] > 0) & (lengths > 0)):
                # the nearest point of the plane w · x = b
                above = self._weights[j] @ x - self._bounds[j]
                x = x - directions[j] * above / lengths[j]
                x = np.where(movable, np.clip(x, self._start, self.high), x)
            if (self.misses(x[None]) <= 1e-15).all():
                break
        return x
