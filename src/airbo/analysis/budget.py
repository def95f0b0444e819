r"""The tolerance budget: which parameter's error makes values scatter, and what halving it buys.

Of every draw of f, the variance over P_x is divided into what each independent group i of
parameters causes alone, and what they cause together (Sobol's first-order indices):

.. math:: S_i = \frac{\mathrm{Var}\, \mathbb E[f(x') \mid x'_i]}{\mathrm{Var} f(x')} \approx
          \frac{2 \sum_n (f(a_n^{(i)}) - f(a_n)) (f(b_n) - f(b_n^{(i)}))}
               {\sum_n (f(a_n) - f(b_n))^2 + (f(a_n^{(i)}) - f(b_n^{(i)}))^2}

with executed inputs a and b, and with group i exchanged between them, a⁽ⁱ⁾ and b⁽ⁱ⁾ (Azzini, Mara
and Rosati, 2021). One group alone has a⁽ⁱ⁾ = b and b⁽ⁱ⁾ = a, and so a share of exactly 1. A linear
f with slopes a and independent errors of standard deviations s has
:math:`S_i = a_i^2 s_i^2 / \sum_j a_j^2 s_j^2`.

Notation: g groups of parameters; N executed inputs in each of the rows a, b, a⁽ⁱ⁾, b⁽ⁱ⁾ and those
with halved errors; values (S rows N), by S draws of f.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.analysis.window import design_in_use
from airbo.measures import InSpec
from airbo.measures.capability import CERTAINTY, Likely
from airbo.measures.posterior import Effort, MeasureModel
from airbo.optimizer import Optimizer
from airbo.space import Design
from airbo.space.cube import Cube
from airbo.uncertainty import InputUncertainty, base_draws

EFFORT_OF_BUDGET = Effort(n_pairs=128, n_executed=1)
"""Draws of f; the executed inputs are the budget's own."""
N_EXECUTED = 1024
HALVED = 0.5


@dataclass(frozen=True)
class Contribution:
    """What the errors of some parameters do to the scatter, and what halving them buys."""

    parameters: tuple[str, ...]
    share: Likely
    """Share of the variance that these errors cause alone."""
    scatter_if_halved: Likely
    """Standard deviation if they were half as large, relative to today's."""
    gain_if_halved: Likely | None = None
    """By how much the share in spec would rise, where there are limits."""
    is_clear: bool | None = None
    """Whether the change is significant, corrected for comparing several changes."""


@dataclass(frozen=True)
class ToleranceBudget:
    """Where the scatter of the values of one design comes from."""

    design: Design
    scatter: Likely
    """Standard deviation of the values over where the design lands, in the user's units."""
    contributions: tuple[Contribution, ...]
    """One for each group of parameters that deviate independently of the others, in their order."""
    together: Likely
    """Share of the variance that errors of several groups cause only together."""
    noise: Likely | None
    """Share of observation noise, where it is a property of the product."""
    all_halved: Contribution | None
    """What halving all errors would buy; None if the design is hit exactly."""
    in_spec: Likely | None = None
    """Share in spec today, where there are limits."""
    outcome: str | None = None
    """Which outcome it is about, where there are several."""

    def in_spec_if_halved(self, c: Contribution) -> float | None:
        """Return the share in spec if some errors were half as large, where there are limits."""
        if c.gain_if_halved is None or self.in_spec is None:
            return None
        return min(max(self.in_spec.value + c.gain_if_halved.value, 0.0), 1.0)


def tolerance_budget(
    optimizer: Optimizer,
    design: Mapping[str, Any] | None = None,
    outcome: str | None = None,
    measure: InSpec | None = None,
    given: Mapping[str, Any] | None = None,
) -> ToleranceBudget:
    """Return which share of the scatter each parameter causes, and what halving it would buy.

    Args:
        optimizer: It is not changed.
        design: The design in use; by default the recommended one.
        outcome: Which outcome scatters, where there are several; by default the first objective.
        measure: Limits of the values; by default those of the optimizer or of the outcome, if
            there are any.
        given: What is known of the environment, by name.
    """
    with optimizer.exclusive():
        plain = design_in_use(optimizer, design, given)
        model = optimizer.outcome_model(outcome, measure, given=given)
        section, uncertainty = model.surrogate.points.cube, model.surrogate.deployment
        cube = section.whole
        # x' in rows, f(x') by S draws of f, then variances over the N of each row
        draws = model.draws(EFFORT_OF_BUDGET)
        limits = draws.measure if isinstance(draws.measure, InSpec) else None

        X = section.columns([plain], allow_outside=True)
        groups = uncertainty.independent_groups(cube.space.d)
        executed = _ExecutedInputs.of(uncertainty, X, groups)
        with torch.no_grad():
            values = executed.values(draws, cube)  # (S, rows, N), noise included
        parts = _Parts(values, len(groups), draws.noise_variance, limits)
        names = [tuple(cube.space.names[c] for c in group) for group in groups]
        contributions = tuple(
            parts.contribution(own, executed.n_of_P + i, parts.shares[i])
            for i, own in enumerate(names)
        )
        everything = tuple(name for own in names for name in own)
        # the share in spec today is the one that is told of the design everywhere
        [today] = model.capabilities([plain])
        # what no group explains alone: 1 - noise - Σ_i S_i
        rest = 1 - parts.noise_share - sum(parts.shares, torch.zeros_like(parts.noise_share))
        return ToleranceBudget(
            plain,
            Likely.of(parts.variance.sqrt(), model.unit),
            contributions,
            Likely.of(rest.clamp_min(0) if len(groups) > 1 else 0 * rest),
            Likely.of(parts.noise_share) if draws.noise == "product" else None,
            parts.contribution(everything, -1, 1 - parts.noise_share) if groups else None,
            None if today is None else Likely(today.share, *today.share_interval),
            model.goal.name if len(optimizer.outcomes) > 1 else None,
        )


@dataclass(frozen=True)
class _ExecutedInputs:
    """Executed inputs of one design, in rows of N: a, b, a⁽ⁱ⁾, b⁽ⁱ⁾; then with errors halved."""

    X: Float[Tensor, "rows N d"]
    n_of_P: int
    """How many rows are draws of P_x."""
    z: Float[Tensor, " N"]
    """Standard normal numbers, for noise."""

    @classmethod
    def of(
        cls, u: InputUncertainty, X: Float[Tensor, "1 d"], groups: Sequence[tuple[int, ...]]
    ) -> "_ExecutedInputs":
        # two independent executed inputs a, b, and a with its error halved
        r = u.n_base(X.shape[-1])
        base = base_draws(N_EXECUTED, 2 * r + 1)
        a, b = (u.perturb(X, base[:, some])[0] for some in (slice(0, r), slice(r, 2 * r)))
        half = X + HALVED * (a - X)
        # group i exchanged: a⁽ⁱ⁾ = a with b_i, b⁽ⁱ⁾ = b with a_i; and a with half of its error in i
        pairs = ((a, b), (b, a), (a, half))
        exchanged = [_exchanged(one, other, group) for one, other in pairs for group in groups]
        n_of_P = 2 + 2 * len(groups)
        return cls(torch.stack([a, b, *exchanged, half]), n_of_P, torch.special.ndtri(base[:, -1]))

    def values(self, measured: MeasureModel, cube: Cube) -> Float[Tensor, "S rows N"]:
        """Return draws of the values."""
        # f at all rows in one draw, so that their differences are those of one function
        rows, N, _ = self.X.shape
        flat = cube.from_columns(self.X.flatten(0, 1))
        values = measured.at_executed(flat, self.n_of_P * N, self.z.repeat(rows))
        return values.unflatten(-1, (rows, N))


def _exchanged(
    one: Float[Tensor, "N d"], other: Float[Tensor, "N d"], group: Sequence[int]
) -> Float[Tensor, "N d"]:
    """Return points with one group of columns from other points."""
    columns = torch.tensor(group)
    return one.index_copy(-1, columns, other[:, columns])


class _Parts:
    """Draws of shares, scatters and shares in spec."""

    def __init__(
        self, values: Float[Tensor, "S rows N"], g: int, noise: Float[Tensor, ""],
        limits: InSpec | None,
    ) -> None:  # fmt: skip
        self.limits, self.n_compared = limits, g + 1
        self.values = values
        # Var over a and b together, of every draw
        self.variance = values[:, :2].flatten(1).var(-1, correction=0)
        whole = self.variance.clamp_min(1e-300)
        self.noise_share = (noise / whole).clamp(0, 1)
        a, b = values[:, 0], values[:, 1]
        a_i, b_i = values[:, 2 : 2 + g].unbind(1), values[:, 2 + g : 2 + 2 * g].unbind(1)
        # noise is the same in all rows: it cancels, and the indices are those of f
        indices = [first_order_index(a, b, *both) for both in zip(a_i, b_i, strict=True)]
        self.shares = [(1 - self.noise_share) * index for index in indices]

    def contribution(
        self, parameters: tuple[str, ...], row: int, share: Float[Tensor, " S"]
    ) -> Contribution:
        """Summarize a group whose halved errors stand in a row."""
        halved, today = self.values[:, row], self.values[:, 0]
        # sd with errors halved / sd today, of each draw of f
        ratio = halved.std(-1, correction=0) / today.std(-1, correction=0).clamp_min(1e-150)
        found = Contribution(parameters, Likely.of(share), Likely.of(ratio))
        if self.limits is None:
            return found
        gain = self.limits.of(halved) - self.limits.of(today)
        # each of k changes has to be clear at 1/k of what one alone would need (Bonferroni)
        tail = (1 - CERTAINTY) / 2 / self.n_compared
        ends = gain.quantile(gain.new_tensor([tail, 1 - tail]))
        is_clear = bool((ends > 0).all() or (ends < 0).all())
        return Contribution(parameters, found.share, found.scatter_if_halved,
                            Likely.of(gain), is_clear)  # fmt: skip


def first_order_index(
    a: Float[Tensor, "S N"], b: Float[Tensor, "S N"],
    a_i: Float[Tensor, "S N"], b_i: Float[Tensor, "S N"],
) -> Float[Tensor, " S"]:  # fmt: skip
    """Estimate S_i of every draw from values at executed inputs, see the top of this file."""
    # S_i = 2 E (f(a⁽ⁱ⁾) - f(a)) (f(b) - f(b⁽ⁱ⁾)) / E (f(a) - f(b))² + (f(a⁽ⁱ⁾) - f(b⁽ⁱ⁾))²
    alone = 2 * ((a_i - a) * (b - b_i)).mean(-1)
    whole = ((a - b).square() + (a_i - b_i).square()).mean(-1)  # 4 Var f
    return (alone / whole.clamp_min(1e-300)).clamp(0, 1)
