"""Learn an uncertainty from asked and actual values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.composed import Product
from airbo.uncertainty.learning import joint, series, words
from airbo.uncertainty.learning.compare import Candidate, Verdict, judged
from airbo.uncertainty.learning.joint import Together
from airbo.uncertainty.learning.resolution import bin_width, step_of
from airbo.uncertainty.learning.sample import Sample, samples, spread
from airbo.uncertainty.learning.toml import written
from airbo.uncertainty.learning.words import Finding

_FEW = 20
_ASPECTS = {
    "bias", "no bias", "small bias", "constant", "relative", "varying", "normal", "uniform",
    "skewed", "heavy-tailed", "two-moded", "several modes", "log", "log-normal", "exact",
}  # fmt: skip
"""Kinds that are parts of the first sentence about a parameter."""


@dataclass(frozen=True)
class Learned:
    """What a log of asked and actual values tells."""

    uncertainty: InputUncertainty
    """The proposal, for the parameters in the order of the columns."""
    by_parameter: dict[str | tuple[str, ...], InputUncertainty]
    """The same by parameter, or by group of parameters that are missed together."""
    candidates: tuple[Candidate, ...]
    """Everything that was compared, parameter by parameter, the best first."""
    findings: tuple[Finding, ...]
    """Everything that was found, each with a kind and a text."""
    text: str
    """The proposal in a few sentences."""
    toml: str
    """The proposal as a campaign file holds it."""
    samples: tuple[Sample, ...]
    """What it was learned from."""
    outliers: tuple[Sample, ...]
    """Values far off, one sample per parameter."""

    def __str__(self) -> str:
        return self.text


def learn(
    asked: Any,
    actual: Any,
    *,
    names: Sequence[str] | None = None,
    lag: int | None = None,
    settled: bool = False,
    keep_outliers: bool = False,
    seed: int = 0,
) -> Learned:
    """Learn an uncertainty from a log of asked and actual values.

    Candidates are compared by the likelihood of rows that they were not fitted to. Neighbouring
    rows stay in one fold. Of those within one standard error of the best, the simplest is chosen.

    >>> import numpy as np
    >>> from airbo import uncertainty as unc
    >>> rng = np.random.default_rng(0)
    >>> asked = rng.uniform(20, 80, size=500)
    >>> learned = unc.learn({"flow": asked}, {"flow": asked * rng.normal(1, 0.05, size=500)})
    >>> learned.uncertainty
    Relative(share=Normal(std=0.0469...))
    >>> print(learned.text)
    flow: no bias, normal with std 4.69%, in percent of the asked value (20 to 79.8).

    Args:
        asked: Asked values: an array (n) or (n d), a column, a table, or a dict of columns; the
            rows in the order of time. Rows without a number are skipped.
        actual: Actual values, in the same form. Columns are paired by name, else by position.
        names: What to call the parameters.
        lag: How many rows later the actual values follow; by default it is looked for.
        settled: Whether to leave out the rows in which the machine is on its way to a new value.
        keep_outliers: Whether values far off count; by default they are named and left out.
        seed: Of the little randomness there is: how rounded values of groups are spread.
    """
    found: list[Finding] = []
    prepared = [
        _prepared(sample, found, lag, settled, keep_outliers)
        for sample in samples(asked, actual, names)
    ]
    verdicts = [judged(sample) for sample, _ in prepared]
    for v in verdicts:
        found += [*words.aspects(v), *_in_time(v)]
    pairs = joint.dependences(verdicts)
    found += [words.together(pair) for pair in pairs]
    by_name = {v.sample.name: v for v in verdicts}
    groups = [
        joint.describe([by_name[name] for name in own], seed)
        for own in joint.groups(list(by_name), pairs)
    ]
    found += [words.grouped(group) for group in groups]
    proposal = _proposal(verdicts, groups)
    compared = [c for v in verdicts for c in v.candidates] + [
        c for g in groups for c in g.candidates
    ]
    return Learned(
        uncertainty=_assembled(proposal, list(by_name)),
        by_parameter=proposal,
        candidates=tuple(compared),
        findings=tuple(found),
        text=_text(list(by_name), found),
        toml=written(proposal),
        samples=tuple(sample for sample, _ in prepared),
        outliers=tuple(far for _, far in prepared),
    )


def _prepared(
    sample: Sample, found: list[Finding], lag: int | None, settled: bool, keep_outliers: bool
) -> tuple[Sample, Sample]:
    """Shift and select rows, and name what was found on the way; return also the values far off."""
    name, n_rows = sample.name, int(sample.rows.max()) + 1
    if len(sample) < n_rows:
        found.append(words.missing(name, n_rows - len(sample), n_rows))
    step = step_of(sample.x + sample.d)
    sample = replace(sample, width=bin_width(sample.d))

    late = series.find_lag(sample)
    if late is not None:
        found.append(words.lag(name, late, used=lag is None or lag == late.rows))
    sample = series.shifted(sample, (late.rows if late else 0) if lag is None else lag)

    moving = series.find_settling(sample)
    if moving is not None:
        found.append(words.settling(name, moving, settled))
    if moving is not None and settled:
        age = series.since_change(sample.x)
        sample = sample.at((age < 0) | (age >= moving.rows))

    sample = replace(sample, width=bin_width(sample.d))
    far = series.far_off(sample)
    if len(far):
        found.append(words.outliers(sample, far, keep_outliers))
    apart = sample.at(far)
    if not keep_outliers:
        sample = sample.at(np.setdiff1d(np.arange(len(sample)), far))
    if step > 0.2 * (spread(sample.d) or step):
        ties = float(np.mean(np.abs(sample.d) < step / 1000))
        found.append(words.quantized(name, step, ties))
    if len(sample) < _FEW:
        found.append(words.few(name, len(sample)))
    return replace(sample, width=bin_width(sample.d)), apart


def _in_time(v: Verdict) -> list[Finding]:
    name, scores = v.sample.name, v.normal_scores()
    moved = series.find_drift(v.sample, scores)
    alike = series.autocorrelation(scores)
    found = [] if moved is None else [words.drift(name, moved)]
    if alike > 0.3 and len(scores) >= _FEW:
        found.append(words.resembling(name, alike, len(scores)))
    return found


def _proposal(
    verdicts: Sequence[Verdict], groups: Sequence[Together]
) -> dict[str | tuple[str, ...], InputUncertainty]:
    joined = [group for group in groups if group.chosen.name != "independent"]
    grouped = {name for group in joined for name in group.names}
    found: dict[str | tuple[str, ...], InputUncertainty] = {
        v.sample.name: v.chosen.uncertainty for v in verdicts if v.sample.name not in grouped
    }
    return found | {group.names: group.chosen.uncertainty for group in joined}


def _assembled(
    proposal: dict[str | tuple[str, ...], InputUncertainty], names: list[str]
) -> InputUncertainty:
    if len(proposal) == 1:
        return next(iter(proposal.values()))
    own = [(key,) if isinstance(key, str) else key for key in proposal]
    columns = [[names.index(name) for name in key] for key in own]
    return Product(list(proposal.values()), columns)


def _text(names: Sequence[str], found: Sequence[Finding]) -> str:
    lines = []
    for name in names:
        own = [f for f in found if f.parameters == (name,)]
        first = ", ".join(f.text for f in own if f.kind in _ASPECTS)
        rest = [f.text[0].upper() + f.text[1:] for f in own if f.kind not in _ASPECTS]
        lines.append(" ".join([f"{name}: {first}.", *rest]))
    shared = [f.text for f in found if len(f.parameters) > 1]
    return "\n".join([*lines, *shared])
