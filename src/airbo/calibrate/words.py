"""What was found, in words."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy.signal
import torch

from airbo.calibrate.families import is_log
from airbo.calibrate.sample import Array, Drift, Lag, Rows, Sample, Settling, mean_and_error
from airbo.uncertainty import (
    ChiSquared,
    Exact,
    GaussianMixture,
    InputUncertainty,
    LogNormal,
    Normal,
    Piecewise,
    Relative,
    SciPy,
    Uniform,
)

if TYPE_CHECKING:
    from airbo.calibrate.learned import Candidate

_MOST_ROWS = 8

Shown = Callable[[float], str]


@dataclass(frozen=True)
class Finding:
    """Something that the log shows."""

    kind: str
    """One word, such as ``bias``, ``relative``, ``heavy-tailed``, ``lag`` or ``drift``."""
    parameters: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def short(value: float) -> str:
    """Write a number with three digits."""
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def share(value: float) -> str:
    """Write a share in percent."""
    return f"{short(100 * value)}%"


# -- bias, shape and scale of one parameter


def aspects(sample: Sample, law: InputUncertainty) -> list[Finding]:
    """Say what the chosen law is: its bias, its shape, and how it depends on the asked value."""
    names = (sample.name,)
    where = f"{short(sample.x.min())} to {short(sample.x.max())}"
    if isinstance(law, Piecewise):
        text = f"the deviation changes over the range: {_pieces(law)}"
        return [Finding("varying", names, text)]
    percent = isinstance(law, Relative | LogNormal)
    shape = law.share if isinstance(law, Relative) else law
    centre = 0.0 if isinstance(law, LogNormal) else _moments(shape)[0]
    found = [_bias(centre, percent, sample, names), _shaped(shape, percent, names)]
    if percent:
        found.append(Finding("relative", names, f"in percent of the asked value ({where})"))
    else:
        found.append(Finding("constant", names, f"the same over the range {where}"))
    return found


def _moments(shape: InputUncertainty) -> tuple[float, float]:
    """Return mean and standard deviation of a deviation."""
    origin = torch.zeros(1, 1, dtype=torch.float64)
    return shape.mean(origin).item(), shape.covariance(origin).item() ** 0.5


def _bias(centre: float, percent: bool, sample: Sample, names: tuple[str, ...]) -> Finding:
    show = share if percent else short
    away = sample.x != 0
    values = sample.d[away] / sample.x[away] if percent else sample.d
    mean, error = mean_and_error(values)
    if abs(mean) <= 4 * error or abs(mean) < 0.02 * float(values.std()):
        return Finding("no bias", names, "no bias")
    side = "above" if mean > 0 else "below"
    if centre != 0:
        text = f"on average {show(abs(centre))} {side} the asked value (bias)"
        return Finding("bias", names, text)
    text = (
        f"on average {show(abs(mean))} {side} the asked value, "
        "too little beside the spread to count as a bias"
    )
    return Finding("small bias", names, text)


def _shaped(shape: InputUncertainty, percent: bool, names: tuple[str, ...]) -> Finding:
    show = share if percent else short
    if isinstance(shape, Exact):
        return Finding("exact", names, "no spread at all")
    if isinstance(shape, LogNormal):
        return Finding("log-normal", names, f"log-normal, std {share(shape.sigma)}")
    if isinstance(shape, Uniform):
        text = f"uniform between {show(shape.low)} and {show(shape.high)}"
        return Finding("uniform", names, text)
    if isinstance(shape, ChiSquared | SciPy):
        side = "higher" if isinstance(shape, ChiSquared) else "lower"
        text = f"skewed, with a tail to {side} values (std {show(_moments(shape)[1])})"
        return Finding("skewed", names, text)
    assert isinstance(shape, Normal | GaussianMixture)
    if is_log(shape):
        return _log(shape, show, names)
    return _normals(shape, show, names)


def _normals(shape: Normal | GaussianMixture, show: Shown, names: tuple[str, ...]) -> Finding:
    std = _moments(shape)[1]
    if isinstance(shape, Normal) or len(shape.weights) == 1:
        if std == 0:
            return Finding("exact", names, "no spread at all")
        return Finding("normal", names, f"normal with std {show(std)}")
    weights, means, stds = _components(shape)
    modes = _modes(weights, means, stds)
    if len(modes) > 1:
        listed = " and ".join(show(m) for m in modes)
        text = f"two modes, at deviations of {listed} (std {show(std)} in all)"
        return Finding("two-moded", names, text)
    parts = " and ".join(f"{share(w)} of std {show(s)}" for w, s in zip(weights, stds, strict=True))
    # E (δ - μ)³ / σ³ of a mixture
    away = means - weights @ means
    skewness = float(weights @ (away**3 + 3 * away * stds**2)) / std**3
    kind = "skewed" if abs(skewness) > 0.5 else "heavy-tailed"
    return Finding(kind, names, f"{kind}, a mixture of normals: {parts}")


def _components(shape: InputUncertainty) -> tuple[Array, Array, Array]:
    """Return weights, means and standard deviations of normals."""
    assert isinstance(shape, GaussianMixture)
    variances = np.array(shape.covs)[:, 0, 0]
    return np.array(shape.weights), np.array(shape.means)[:, 0], np.sqrt(variances)


def _modes(weights: Array, means: Array, stds: Array) -> Array:
    """Return where the density of normals has clear maxima."""
    grid = np.unique((means[:, None] + stds[:, None] * np.linspace(-4, 4, 401)).ravel())
    z = (grid[:, None] - means) / stds
    p = np.exp(-(z**2) / 2) @ (weights / stds)
    peaks, _ = scipy.signal.find_peaks(np.pad(p, 1), prominence=0.05 * float(p.max()))
    return grid[peaks - 1]


def _log(shape: InputUncertainty, show: Shown, names: tuple[str, ...]) -> Finding:
    weights, values, _ = _components(shape)
    low, high = values[np.searchsorted(weights.cumsum(), [0.05, 0.95])]
    text = (
        f"{_character(weights, values)}; no simple shape describes it, so the log itself is "
        f"proposed (90% of the deviations lie between {show(low)} and {show(high)})"
    )
    return Finding("log", names, text)


def _character(weights: Array, values: Array) -> str:
    z = values - weights @ values
    std = float(np.sqrt(weights @ z**2))
    skew, kurtosis = float(weights @ z**3) / std**3, float(weights @ z**4) / std**4 - 3
    tails = f"heavy-tailed (excess kurtosis {short(kurtosis)})" if kurtosis > 2 else ""
    side = f"skewed (skewness {short(skew)})" if abs(skew) > 1 else ""
    return " and ".join(word for word in (tails, side) if word) or "irregular"


def _pieces(law: Piecewise) -> str:
    ends = [None, *law.edges, None]
    said = []
    for (low, high), shape in zip(pairwise(ends), law.pieces, strict=True):
        if low is None:
            where = f"below {short(high or 0.0)}"
        elif high is None:
            where = f"from {short(low)} on"
        else:
            where = f"from {short(low)} to {short(high)}"
        assert isinstance(shape, Normal | GaussianMixture)
        kind, (mean, std) = _normals(shape, short, ()).kind, _moments(shape)
        said.append(f"{where} {kind}, mean {short(mean)}, std {short(std)}")
    return "; ".join(said)


# -- the rest


def missing(name: str, n: int, n_rows: int) -> Finding:
    """Name rows without a value."""
    return Finding(
        "missing", (name,), f"{n} of {n_rows} rows lack the asked or the actual value; skipped."
    )


def lag(name: str, found: Lag, used: bool) -> Finding:
    """Name a lag."""
    done = (
        "The proposal compares each asked value with the actual value that many rows later."
        if used
        else "The proposal includes it."
    )
    return Finding(
        "lag", (name,),
        f"actual follows asked {_rows(found.rows)} later: so shifted, deviations shrink from "
        f"{short(found.before)} to {short(found.after)} on average. {done}",
    )  # fmt: skip


def settling(name: str, found: Settling, left_out: bool) -> Finding:
    """Name rows on the way to a new value."""
    done = (
        "They are left out."
        if left_out
        else "The proposal includes them; leave them out (settled) if experiments wait that long."
    )
    return Finding(
        "settling", (name,),
        f"for {_rows(found.rows)} after a change of the asked value the machine is on its way: "
        f"deviations of {short(found.moving)} instead of {short(found.settled)} on average, in "
        f"{_rows(found.n_moving)}. {done}",
    )  # fmt: skip


def outliers(sample: Sample, places: Rows, kept: bool) -> Finding:
    """Name values far off, by their rows in the log."""
    rows = [str(label) for label in sample.labels[places]]
    listed = ", ".join(rows[:_MOST_ROWS]) + (", ..." if len(rows) > _MOST_ROWS else "")
    worst = sample.d[places][np.argmax(np.abs(sample.d[places]))]
    rows_called = "row" if len(rows) == 1 else "rows"
    many = f"{len(rows)} of {len(sample)} rows are" if len(rows) > 1 else "1 row is"
    done = "kept in the proposal" if kept else "left out of the proposal"
    return Finding(
        "outliers", (sample.name,),
        f"{many} far off, by up to {short(worst)} ({rows_called} {listed}); {done}.",
    )  # fmt: skip


def quantized(name: str, step: float, ties: float) -> Finding:
    """Name the steps of the log."""
    text = f"actual values come in steps of {short(step)}."
    if ties > 0.01:
        text = f"{text[:-1]}; {share(ties)} of the rows show no deviation."
    return Finding("quantized", (name,), text)


def drift(name: str, found: Drift) -> Finding:
    """Name a trend."""
    return Finding(
        "drift", (name,),
        f"deviations drift: their median moves from {short(found.first)} in the first tenth of "
        f"the rows to {short(found.last)} in the last. The proposal counts this as spread; "
        "a machine that is calibrated more often would be more precise.",
    )  # fmt: skip


def resembling(name: str, correlation: float, n: int) -> Finding:
    """Name rows that are no independent evidence."""
    worth = n * (1 - correlation) / (1 + correlation)
    return Finding(
        "autocorrelation", (name,),
        f"neighbouring rows deviate alike (correlation {correlation:.2f}): {n} rows tell as much "
        f"as about {worth:.0f} independent ones.",
    )  # fmt: skip


def few(name: str, n: int) -> Finding:
    """Say that there is too little to learn a shape from."""
    return Finding(
        "few rows", (name,), f"{n} rows are too few to learn a shape: a normal one is assumed."
    )


def together(names: tuple[str, str], correlation: float, of_sizes: float) -> Finding:
    """Name two parameters that depend on each other."""
    one, other = names
    if correlation:
        said = f"deviate together (correlation {correlation:.2f})"
    else:
        said = f"deviate at the same time (correlation of the sizes {of_sizes:.2f})"
    return Finding("dependence", names, f"{one} and {other} {said}.")


def grouped(chosen: "Candidate") -> Finding:
    """Say what is proposed for parameters that depend on each other."""
    listed = ", ".join(chosen.parameters)
    if chosen.name == "independent":
        return Finding(
            "independent anyway", chosen.parameters,
            f"{listed}: what fits each of them alone describes the log better than any joint "
            "candidate, so they are proposed as independent.",
        )  # fmt: skip
    return Finding("group", chosen.parameters, f"{listed}: proposed together ({chosen.name}).")


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"
