"""What was found, in words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from airbo.calibrate.families import proposal
from airbo.calibrate.sample import Sample, mean_and_error
from airbo.uncertainty import (
    Empirical,
    GaussianMixture,
    InputUncertainty,
    LogNormal,
    Normal,
    Piecewise,
    Relative,
)
from airbo.uncertainty.kinds import said

if TYPE_CHECKING:
    from airbo.calibrate.learned import Candidate


@dataclass(frozen=True)
class Finding:
    """Something that the log shows."""

    kind: str
    """One word, such as ``bias``, ``relative``, ``skewed``, ``lag`` or ``drift``."""
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

_KINDS = {
    "Exact": "exact", "Normal": "normal", "Uniform": "uniform", "LogNormal": "log-normal",
    "ChiSquared": "skewed", "SciPy": "skewed", "GaussianMixture": "mixture", "Empirical": "log",
}  # fmt: skip
"""What the shapes of candidates are called, by their classes."""


def aspects(sample: Sample, law: InputUncertainty) -> list[Finding]:
    """Say what the chosen law is: its bias, its shape, and how it depends on the asked value."""
    names = (sample.name,)
    where = f"asked values from {short(sample.x.min())} to {short(sample.x.max())}"
    if isinstance(law, Piecewise):
        return [Finding("varying", names, said(law, _show)), Finding("range", names, where)]
    percent = isinstance(law, Relative | LogNormal)
    shape = proposal(law.share if isinstance(law, Relative) else law)
    centre = 0.0 if isinstance(law, LogNormal) else _moments(shape)[0]
    bias = _bias(centre, percent, sample, names)
    if isinstance(shape, GaussianMixture) and len(shape.weights) == 1:
        shape = Normal(_moments(shape)[1])  # the bias is said already
    text = said(Relative(shape) if isinstance(law, Relative) else shape, _show)
    if isinstance(shape, Empirical):
        text += " (no simple shape describes it, so the log itself is proposed)"
    kind = Finding(_KINDS[type(shape).__name__], names, text)
    return [bias, kind, Finding("relative" if percent else "constant", names, where)]


def _show(numbers: Any, unit: bool = True) -> str:
    plain = numbers if isinstance(numbers, list | tuple) else [numbers]
    return ", ".join(map(short, plain))


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


# -- parameters that depend on each other


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


def rows(n: int) -> str:
    """Count rows."""
    return "1 row" if n == 1 else f"{n} rows"
