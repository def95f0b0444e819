"""Points of the folded cube that meet the constraints of a space: spread evenly, or optimal.

Notation
    F (n d)      points of the folded cube: every parameter from 0 to 1, on its own scale
    X (n d)      the same in columns, in which constraints are linear: w · x <= b, or = b
    U (n d)      uniform points
    z (k)        the continuous parameters of one point, which a climb moves
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from airbo.seeds import stream
from airbo.space.cube import Section
from airbo.space.polytope import FloatArray, Polytope

N_BLOCK, MOST_BLOCKS = 4096, 16
"""Number of points to test against the constraints at a time, and how often to do so."""
N_DRAWN = 128
"""Number of points drawn inside the constraints if uniform points hardly ever meet them."""
N_CLIMBS, N_STEPS = 6, 40
"""Number of starting points of a search, and of steps from each."""
N_MOVES = 20
"""How often a search moves to a better neighbour in discrete parameters."""


def values_at(function: AcquisitionFunction, Z: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Return the values of a function at points, one by one."""
    with torch.no_grad():
        return torch.cat([function(part.unsqueeze(-2)) for part in Z.split(256)])


def best_of(function: AcquisitionFunction, Z: Float[Tensor, "n m"]) -> Float[Tensor, "1 m"]:
    """Return the point among ``Z`` where the function is largest."""
    return Z[[int(values_at(function, Z).argmax())]]


@dataclass(frozen=True)
class Within:
    """The part of a folded cube that meets the constraints of its space."""

    cube: Section

    @property
    def polytope(self) -> Polytope:
        """The same in columns."""
        return self.cube.space.polytope

    @cached_property
    def ends(self) -> Float[Tensor, "2 d"]:
        """Smallest and largest value of each column of the folded cube."""
        return self.cube.axes.from_columns(torch.tensor(np.stack(self.polytope.extent)))

    # -- spread

    def spread(
        self, uniform: Callable[[int, int], Tensor], seed: int
    ) -> Iterator[Float[Tensor, "1 d"]]:
        """Yield evenly spread points, without end.

        Args:
            uniform: Returns points ``start`` to ``stop`` of a uniform sequence.
            seed: Seed of the points that are drawn if hardly any point of that sequence meets the
                constraints.
        """
        # rejection, as long as one point in N_BLOCK is accepted
        n_found = 0
        for block in range(MOST_BLOCKS):
            found = self.accepted(uniform(block * N_BLOCK, (block + 1) * N_BLOCK))
            n_found += len(found)
            yield from (F[None] for F in found)
            if n_found <= block:
                break
        # beyond, points from inside the polytope
        for part in count():
            random = stream(seed, "initial designs inside constraints", part)
            yield from (F[None] for F in self._folded(self.polytope.spread(N_DRAWN, random)))

    def drawn(self, n: int) -> Float[Tensor, "n d"]:
        """Return about ``n`` random points, from torch's generator."""
        # uniform points that meet the constraints; if these are few, points from inside them too
        F = self.accepted(torch.rand(N_BLOCK, self.cube.space.d, dtype=torch.float64))[:n]
        if len(F) >= min(n, N_DRAWN):
            return F
        random = np.random.default_rng(int(torch.randint(2**62, ())))
        return torch.cat([F, self._folded(self.polytope.spread(N_DRAWN, random))])

    def accepted(self, U: Float[Tensor, "n d"]) -> Float[Tensor, "k d"]:
        """Return the uniform points that meet the constraints.

        An equality removes one degree of freedom: its last parameter follows from the others. So
        the other parameters stay uniform.
        """
        # stretch to the box around the polytope, solve equalities, keep what holds
        low, high = self.ends
        X = self.cube.axes.to_columns(self.cube.round(low + U * (high - low))).numpy()
        X = self.polytope.solved(X)
        return self._folded(X[self.polytope.holds(X)])

    def _folded(self, X: FloatArray) -> Float[Tensor, "n d"]:
        return self.cube.axes.from_columns(torch.tensor(X, dtype=torch.float64))

    # -- climbing

    def best(
        self, function: AcquisitionFunction, starts: Float[Tensor, "n d"]
    ) -> Float[Tensor, "1 d"]:
        """Maximize a function over the folded cube, starting from the best of some points."""
        # climb in the continuous parameters, from the best starts
        values = values_at(function, starts)
        order = values.argsort(descending=True)[:N_CLIMBS]
        unit = max(float(values.max() - values.min()), 1e-12)
        climbed = torch.cat([self._climbed(function, F[None], unit) for F in starts[order]])
        F = best_of(function, torch.cat([starts[order], climbed]))
        # then move to a better neighbour in one discrete parameter, climb, and so on
        for _ in range(N_MOVES):
            beside = self._beside(F)
            if not len(beside):
                break
            step = self._climbed(function, best_of(function, beside), unit)
            better = best_of(function, torch.cat([F, step]))
            if torch.equal(better, F):
                break
            F = better
        return F

    def _climbed(
        self, function: AcquisitionFunction, F: Float[Tensor, "1 d"], unit: float
    ) -> Float[Tensor, "1 d"]:
        """Climb in all continuous parameters; return ``F`` if the result is not feasible."""
        free = [c for c in range(self.cube.space.d) if c not in self.cube.space.n_values]
        if not free:
            return F
        others = F[0].numpy()

        def whole(z: FloatArray) -> FloatArray:
            at = others.copy()
            at[free] = z
            return at

        def cost(z: FloatArray) -> tuple[float, FloatArray]:
            point = torch.tensor(whole(z))[None].requires_grad_()
            value = function(point.unsqueeze(-2)).sum() / unit
            [slope] = torch.autograd.grad(value, point)
            return -value.item(), -slope[0, free].numpy()

        # max function(z)  s.t.  w · x(z) <= b: nonlinear where a scale is logarithmic
        found: Any = minimize(
            cost,
            others[free],
            jac=True,
            bounds=[(0.0, 1.0)] * len(free),
            constraints=self._conditions(whole, free),
            method="SLSQP",
            options={"maxiter": N_STEPS, "ftol": 1e-7},
        )
        if not np.isfinite(found.x).all():
            return F
        # the nearest point that meets the constraints exactly
        X = self.cube.axes.to_columns(torch.tensor(whole(found.x))[None]).numpy()
        fixed = {c: X[0, c] for c in self.cube.space.n_values}
        near = self.polytope.nearest(X[0], fixed)
        return F if near is None else self._folded(near[None])

    def _conditions(
        self, whole: Callable[[FloatArray], FloatArray], free: list[int]
    ) -> list[dict[str, Any]]:
        """Write the constraints as functions of the free parameters; log scales are nonlinear."""

        def columns(z: FloatArray) -> tuple[FloatArray, FloatArray]:
            point = torch.tensor(whole(z)).requires_grad_()
            X = self.cube.axes.to_columns(point)
            [slopes] = torch.autograd.grad(X.sum(), point)  # each column depends on itself alone
            return X.detach().numpy(), slopes.numpy()

        conditions = []
        for weights, bound, scale, is_equality in self.polytope.rows:
            if not weights[free].any():
                continue

            # (b - w · x) / scale >= 0, and its slope by z: -w_j x_j'(z_j) / scale
            def left(
                z: FloatArray, w: FloatArray = weights, b: float = bound, s: float = scale
            ) -> float:
                return float((b - w @ columns(z)[0]) / s)

            def slope(z: FloatArray, w: FloatArray = weights, s: float = scale) -> FloatArray:
                return np.asarray(-(w * columns(z)[1])[free] / s)

            conditions.append({"type": "eq" if is_equality else "ineq", "fun": left, "jac": slope})
        return conditions

    def _beside(self, F: Float[Tensor, "1 d"]) -> Float[Tensor, "n d"]:
        """Return designs in which one discrete parameter takes another value.

        The other parameters move only as far as the constraints require.
        """
        # the nearest design with x_j moved by a step, for each discrete j
        x = self.cube.axes.to_columns(F)[0].numpy()
        found = []
        for column, n in self.cube.space.n_values.items():
            for value in self._values_beside(column, n, x[column]):
                near = self.polytope.nearest(x, {column: value})
                if near is not None:
                    found.append(near)
        return self._folded(np.array(found).reshape(-1, len(x)))

    def _values_beside(self, column: int, n: int, value: float) -> list[float]:
        # value k of n is low + k (high - low) / (n - 1)
        low, high = (end[column] for end in self.cube.space.bounds)
        step = (high - low) / (n - 1)
        k = round((value - low) / step)
        if column in self.cube.space.categorical_columns:
            return [float(i) for i in range(n) if i != k]
        # one step, and a tenth of the range
        jumps = {1, max(1, n // 10)}
        steps = {k + sign * jump for jump in jumps for sign in (1, -1)}
        return [low + i * step for i in sorted(steps) if 0 <= i < n]
