"""Do measured deviations look like the uncertainty that somebody wrote down?

Notation: x' measured values (n) of one parameter; F the distribution function of P_x at each of the
designs. If the uncertainty is right, u = F(x') is uniform and z = Φ⁻¹(u) standard normal (n). w is
the step of a log that was rounded.
"""

from dataclasses import dataclass

import numpy as np
import scipy.special
import scipy.stats
import torch

from airbo.calibrate.logs import Array, bin_width
from airbo.uncertainty import InputUncertainty, base_draws

UNLIKELY = 0.01
"""Below this probability, chance no longer explains a difference."""
_FEWEST, _FEW = 3, 10
_N_DRAWS, _ROWS_AT_ONCE = 2**13, 200


@dataclass(frozen=True)
class Belief:
    """Whether an uncertainty is believable, given where one parameter landed."""

    parameter: str
    n: int
    """Number of measured values."""
    p_value: float
    """How often chance alone makes differences as large as these."""
    text: str
    """The verdict in a sentence."""

    @property
    def is_believable(self) -> bool:
        """Whether chance explains the differences."""
        return self.p_value >= UNLIKELY


def believe(
    name: str, uncertainty: InputUncertainty, designs: Array, column: int, actual: Array, said: str
) -> Belief:
    """Compare measured values of one parameter with where they were expected.

    If the uncertainty is right, F(x') is uniform and z = Φ⁻¹(F(x')) standard normal. Their mean,
    their spread and their shape are tested.

    Args:
        name: Of the parameter.
        uncertainty: Over all columns.
        designs: What was asked (n d).
        column: Of the parameter.
        actual: Where it landed (n).
        said: The uncertainty in words.
    """
    n, d = len(actual), actual - designs[:, column]
    if n < _FEWEST:
        text = f"{name}: too few measured values to judge: {n}; {_FEWEST} are needed."
        return Belief(name, n, 1.0, text)
    width = bin_width(d)
    u = _levels(uncertainty, designs, column, actual, width)
    if u is None:
        return _about_exact(name, d)
    z = scipy.special.ndtri(u)
    # √(mean z²) is 1 if the spread is right; Σ z² is chi-squared with n degrees of freedom
    side, ratio = "above" if z.mean() > 0 else "below", float(np.sqrt((z**2).mean()))
    upper = float(scipy.special.chdtrc(n, (z**2).sum()))
    reasons = {
        f"the mean lies {side} what it expects (the mean deviation is {d.mean():.3g})": (
            2 * scipy.special.ndtr(-abs(z.mean()) * np.sqrt(n))
        ),
        f"the deviations are about {ratio:.2g} times as large": 2 * min(upper, 1 - upper),
        "their distribution has another shape": float(scipy.stats.kstest(u, "uniform").pvalue),
    }
    # of several tests, one is often unlucky
    p = float(min(1.0, len(reasons) * min(reasons.values())))
    few = f" With {n} values only large differences show." if n < _FEW else ""
    if p >= UNLIKELY:
        verdict = f"believable: {n} measured values agree with it (p = {p:.2g})"
    else:
        why = min(reasons, key=lambda reason: reasons[reason])
        chance = f"p = {p:.1g}" if p > 1e-6 else "p < 1e-6"
        verdict = f"not believable: in {n} measured values, {why} ({chance})"
    return Belief(name, n, p, f"{name}: the file says {said}. That is {verdict}.{few}")


def _levels(
    uncertainty: InputUncertainty, designs: Array, column: int, actual: Array, width: float
) -> Array | None:
    """Return F(x') row by row, in random places of the steps of a log that was rounded.

    None: the parameter is set exactly.
    """
    # u = F(x' - w/2) + v P(x' ± w/2) with v uniform: exactly uniform if P is right, also for steps
    draws = base_draws(_N_DRAWS, uncertainty.n_base(designs.shape[1]))
    random = np.random.default_rng(0).uniform(size=len(actual))
    levels, spread = [], 0.0
    for i in range(0, len(actual), _ROWS_AT_ONCE):
        rows = slice(i, i + _ROWS_AT_ONCE)
        landed = uncertainty.perturb(torch.tensor(designs[rows]), draws)[..., column].numpy()
        spread = max(spread, float(np.ptp(landed, axis=1).max()))
        low, high = (
            (landed < (actual[rows] + side * width / 2)[:, None]).mean(axis=1) for side in (-1, 1)
        )
        levels.append(low + random[rows] * np.maximum(high - low, 0.0))
    if spread == 0:
        return None
    half = 0.5 / _N_DRAWS
    return np.clip(np.concatenate(levels), half, 1 - half)


def _about_exact(name: str, d: Array) -> Belief:
    worst = float(np.abs(d).max())
    says = f"{name}: the file says that it is set exactly."
    if worst == 0:
        return Belief(name, len(d), 1.0, f"{says} That is believable: all {len(d)} values are.")
    text = f"{says} That is not believable: it was missed by up to {worst:.3g}."
    return Belief(name, len(d), 0.0, text)
