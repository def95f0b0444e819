"""Learn an uncertainty from asked and actual values.

Candidates (``families``) are compared by how likely they make rows that they have not seen. Normals
decide first whether deviations are the same everywhere or in percent; if they are sure, the other
shapes are fitted on that scale alone. Where the deviations of some parameters depend on each other,
these parameters are described together.

Notation: x asked values and d deviations of one parameter (n), w their width (see ``families``);
X, D the same for k parameters (n k). A *score* is a held-out log likelihood per value, in nats (n).
"""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.special
import torch

from airbo.calibrate import families as fam
from airbo.calibrate import logs
from airbo.calibrate.logs import Array, Rows, Sample, blocks, evenly, mean_and_error, spread
from airbo.uncertainty import (
    Empirical,
    GaussianMixture,
    InputUncertainty,
    LogNormal,
    Normal,
    Piecewise,
    Product,
    Relative,
    SciPy,
    Uniform,
)
from airbo.uncertainty.kinds import KINDS, percent_of, said

N_FOLDS = 5
ALIKE = 0.01
"""Differences below this, in nats per value, matter to nobody."""
_MOST_ROWS = 5000
"""Rows that candidates are compared on, picked evenly; the choice is fitted to all of them."""
_MOST_LISTED = 8
"""Rows far off that are named one by one."""
_TOGETHER = 0.2
"""Correlations below this are left out."""


@dataclass(frozen=True)
class Finding:
    """Something that the log shows."""

    kind: str
    """One word, such as ``bias``, ``relative``, ``skewed``, ``lag`` or ``drift``."""
    parameters: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Candidate:
    """One kind of uncertainty, and how well it describes rows that it was not fitted to."""

    parameters: tuple[str, ...]
    """What it is for."""
    name: str
    log_likelihood: float
    """Held-out log likelihood per value, in nats; the larger, the better."""
    difference: float
    """The same, minus that of the best candidate: 0 or less."""
    standard_error: float
    """Of the difference."""
    n_numbers: int
    """How many numbers were fitted: simpler candidates have fewer."""
    chosen: bool
    """Whether this is the proposal: the simplest one as good as the best."""
    uncertainty: InputUncertainty
    """The candidate, fitted to all rows."""


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

    def __str__(self) -> str:
        return self.text


def learn(
    asked: Any,
    actual: Any,
    *,
    lag: int | None = None,
    keep_outliers: bool = False,
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
    flow: no bias; ±4.69% of the value (standard deviation); asked values from 20 to 79.8.

    Args:
        asked: Asked values: an array (n) or (n d), a column, a table, or a dict of columns; the
            rows in the order of time. Rows without a number are skipped. Parameters are called
            like the columns.
        actual: Actual values, in the same form. Columns are paired by name, else by position.
        lag: How many rows later the actual values follow; by default it is estimated.
        keep_outliers: Whether values far off count; by default they are named and left out.
    """
    found: list[Finding] = []
    choices = [
        _compare(_prepare(sample, found, lag, keep_outliers))
        for sample in logs.samples(asked, actual)
    ]
    aspects = {v.sample.name: _aspects(v.sample, v.law) for v in choices}
    found += [f for v in choices for f in _drift(v)]
    pairs = _dependences(choices)
    found += [_together(*pair) for pair in pairs]
    by_name = {v.sample.name: v for v in choices}
    groups = [_joint([by_name[name] for name in own]) for own in _groups(list(by_name), pairs)]
    found += [_grouped(_chosen(group)) for group in groups]
    proposal = _proposal(choices, groups)
    return Learned(
        uncertainty=_assemble(proposal, list(by_name)),
        by_parameter=proposal,
        candidates=tuple(c for own in [*(v.candidates for v in choices), *groups] for c in own),
        findings=tuple([*(f for own in aspects.values() for f in own), *found]),
        text=_text(aspects, found),
        toml=to_toml(proposal),
    )


def _prepare(sample: Sample, found: list[Finding], lag: int | None, keep_outliers: bool) -> Sample:
    """Shift and select rows, and name what was found on the way."""

    def name(kind: str, text: str) -> None:
        found.append(Finding(kind, (sample.name,), text))

    # the order matters: a lag looks like spread, and rows on the way look like values far off
    missing = int(sample.rows.max()) + 1 - len(sample)
    if missing:
        n_rows = len(sample) + missing
        name("missing", f"{missing} of {n_rows} rows lack the asked or the actual value; skipped.")
    step = logs.step_of(sample.x + sample.d)
    sample = replace(sample, width=logs.bin_width(sample.d))

    late = logs.find_lag(sample)
    if late is not None:
        n, before, after = late
        done = "are shifted" if lag in (None, n) else "include it"
        name(
            "lag",
            f"actual follows asked {_rows(n)} later: after this shift, deviations shrink from "
            f"{_short(before)} to {_short(after)} on average. The rows of the proposal {done}.",
        )
    sample = logs.shift_rows(sample, (late[0] if late else 0) if lag is None else lag)

    moving = logs.find_settling(sample)
    if moving is not None:
        n, on_the_way, afterwards, n_moving = moving
        done = "The proposal includes them; take them out of the log if experiments wait as long."
        name(
            "settling",
            f"for {_rows(n)} after a change of the asked value the machine is on its way: "
            f"deviations of {_short(on_the_way)} instead of {_short(afterwards)} on average, in "
            f"{_rows(n_moving)}. {done}",
        )

    sample = replace(sample, width=logs.bin_width(sample.d))
    far = logs.far_off(sample)
    apart = sample.at(far)
    if len(far):
        labels = ", ".join(map(str, apart.labels[:_MOST_LISTED]))
        more = ", ..." if len(far) > _MOST_LISTED else ""
        worst = apart.d[np.argmax(np.abs(apart.d))]
        name(
            "outliers",
            f"{len(far)} of {len(sample)} rows are far off, by up to {_short(worst)} "
            f"(rows {labels}{more}); {'kept in' if keep_outliers else 'left out of'} the proposal.",
        )
    if not keep_outliers:
        sample = sample.at(np.setdiff1d(np.arange(len(sample)), far))
    sample = replace(sample, width=logs.bin_width(sample.d))
    found += [Finding(kind, (sample.name,), text) for kind, text in _weaknesses(sample, step)]
    return sample


def _weaknesses(sample: Sample, step: float) -> Iterator[tuple[str, str]]:
    """Say what the selected rows cannot show; ``step`` is that of the actual values."""
    # of a normal rounded to steps w, nearly all is 0 where σ < 0.3 w
    own_step = logs.step_of(sample.d)
    if own_step > logs.UNRESOLVED * float(sample.d.std()) > 0:
        yield (
            "unresolved",
            f"deviations come in steps of {_short(own_step)}, which is too coarse for them: the "
            f"log cannot tell standard deviations below {_short(0.3 * own_step)} apart. Log more "
            "digits before you rely on the proposal.",
        )
    elif step > 0 and not sample.d.any():
        yield (
            "unresolved",
            f"actual values come in steps of {_short(step)}. If they are rounded to these, the log "
            f"cannot show standard deviations below {_short(0.3 * step)}.",
        )
    elif step > 0.2 * (spread(sample.d) or step):
        yield "quantized", f"actual values come in steps of {_short(step)}."
    part = logs.find_part(sample)
    if part is not None:
        low, high, n_there, n_elsewhere = part
        where = _short(low) if low == high else f"{_short(low)} to {_short(high)}"
        yield (
            "part of the range",
            f"deviations occur only where {where} was asked for ({_rows(n_there)}); the other "
            f"{_rows(n_elsewhere)} show none. The proposal is too wide there.",
        )
    if len(sample) < fam.FEWEST_FOR_SHAPE:
        few = f"{len(sample)} rows are too few to learn a shape: a normal one is assumed."
        yield "few rows", few


# -- one parameter


@dataclass(frozen=True)
class _Choice:
    """What one parameter looks like."""

    sample: Sample
    candidates: tuple[Candidate, ...]
    law: InputUncertainty
    """The chosen one, as it was compared."""
    rows: Rows
    """The rows that candidates were compared on."""
    scores: Array
    """Its held-out log likelihood, row by row."""

    def normal_scores(self) -> Array:
        """Return the deviations as numbers that would be standard normal under the proposal."""
        # z = Φ⁻¹(P(δ < d - w/2) + ½ P(d ± w/2)), w the step to which d was rounded
        s, half = self.sample, self.sample.width / 2
        below = fam.probability(self.law, s.x, np.full_like(s.d, -1e300), s.d - half)
        inside = fam.probability(self.law, s.x, s.d - half, s.d + half)
        u = np.clip(below + inside / 2, 0.5 / len(s), 1 - 0.5 / len(s))
        return np.asarray(scipy.special.ndtri(u))


@dataclass(frozen=True)
class _Score:
    """A candidate under comparison."""

    name: str
    law: InputUncertainty
    """Fitted to all rows."""
    scores: Array
    """Held-out log likelihood per value, row by row."""

    @property
    def score(self) -> float:
        return float(self.scores.mean())


def _compare(sample: Sample) -> _Choice:
    """Compare all candidates for one parameter."""
    # normals first: they say on which scale the other shapes are worth fitting
    chosen = evenly(np.arange(len(sample)), _MOST_ROWS)
    some = sample.at(chosen)
    scored = [_score(family, sample, some) for family in fam.families(sample)]
    others = fam.shaped_families(sample, _scales(scored)) if len(scored) > 1 else []
    for family in others:
        # steps that find no edge are another candidate again
        other = _score(family, sample, some)
        if other.law not in [s.law for s in scored]:
            scored.append(other)
    best = _simplest(scored)
    candidates = _rank((sample.name,), scored, best)
    return _Choice(sample, candidates, best.law, sample.rows[chosen], best.scores)


def _scales(normals: Sequence[_Score]) -> list[bool]:
    """Say whether deviations are in percent (True) or not, as normals tell; both in doubt."""
    best = {
        relative: max(own, key=lambda s: s.score).scores
        for relative in (False, True)
        if (own := [s for s in normals if isinstance(s.law, Relative) is relative])
    }
    if len(best) < 2:
        return list(best)
    # values far off weigh much under normals: below two standard errors nothing is decided
    gain, error = mean_and_error(best[True] - best[False])
    return [gain > 0] if abs(gain) > 2 * error else [False, True]


def _folds(n: int) -> Rows:
    """Return the fold of each row: neighbours share one, since they often deviate alike."""
    # block b belongs to fold b mod 5
    return blocks(n) % min(N_FOLDS, n)


def _score(family: fam.Family, sample: Sample, some: Sample) -> _Score:
    # each fold is judged by what the others say; the law itself is fitted to all rows
    scores, of = np.empty(len(some)), _folds(len(some))
    for fold in np.unique(of):
        test = of == fold
        scores[test] = fam.log_density(family.fit(some.at(~test)), some, some.at(test))
    return _Score(family.name, family.fit(sample), scores)


def _simplest(scored: Sequence[_Score]) -> _Score:
    """Return the simplest candidate that is as good as the best: within one standard error."""
    # as good as the best: the difference is within its standard error, or below 0.01 nats
    top = max(scored, key=lambda s: s.score).scores

    def is_as_good(s: _Score) -> bool:
        difference, error = mean_and_error(s.scores - top)
        return difference >= -max(error, ALIKE) or s.scores is top

    return min(filter(is_as_good, scored), key=lambda s: (fam.n_numbers(s.law), -s.score))


def _rank(
    names: tuple[str, ...], scored: Sequence[_Score], chosen: _Score
) -> tuple[Candidate, ...]:
    """Return the candidates, the best first."""
    # differences row by row: what is hard for all candidates does not count
    top = max(scored, key=lambda s: s.score)
    found = []
    for s in sorted(scored, key=lambda s: -s.score):
        difference, error = (0.0, 0.0) if s is top else mean_and_error(s.scores - top.scores)
        n, proposal = fam.n_numbers(s.law), fam.proposal(s.law)
        found.append(Candidate(names, s.name, s.score, difference, error, n, s is chosen, proposal))
    return tuple(found)


def _chosen(candidates: Sequence[Candidate]) -> Candidate:
    return next(c for c in candidates if c.chosen)


def _drift(v: _Choice) -> list[Finding]:
    moved = logs.find_drift(v.sample, v.normal_scores())
    if moved is None:
        return []
    text = (
        f"deviations drift: their median moves from {_short(moved[0])} in the first tenth of "
        f"the rows to {_short(moved[1])} in the last. The proposal counts this as spread; "
        "a machine that is calibrated more often would be more precise."
    )
    return [Finding("drift", (v.sample.name,), text)]


# -- parameters that are missed together


def _dependences(choices: Sequence[_Choice]) -> list[tuple[tuple[str, str], float, float]]:
    """Compare the normal scores of all pairs of parameters, over the rows that both have.

    Returns pairs that depend on each other, with the correlations of their deviations and of the
    sizes of these, whatever their signs.
    """
    # normal scores: shapes and biases are gone, what is left is dependence
    found = []
    for i, one in enumerate(choices):
        for other in choices[i + 1 :]:
            _, a, b = np.intersect1d(one.sample.rows, other.sample.rows, return_indices=True)
            if len(a) < fam.FEWEST_FOR_SHAPE:
                continue
            z, y = one.normal_scores()[a], other.normal_scores()[b]
            signed, sizes = _correlation(z, y), _correlation(np.abs(z), np.abs(y))
            if signed or sizes:
                found.append(((one.sample.name, other.sample.name), signed, sizes))
    return found


def _correlation(a: Array, b: Array) -> float:
    """Return a correlation, 0 where it is small or could be chance."""
    # r is the mean of a b / (s_a s_b), so it has the standard error of a mean
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b))) / len(a)
    if scale == 0:
        return 0.0
    r, error = mean_and_error(a * b / scale)
    return r if abs(r) > max(_TOGETHER, logs.SIGNIFICANT * error) else 0.0


def _groups(
    names: Sequence[str], pairs: Sequence[tuple[tuple[str, str], float, float]]
) -> list[tuple[str, ...]]:
    """Put parameters together that depend on each other, directly or through others."""
    # pairs that share a parameter are merged
    group = {name: {name} for name in names}
    for (one, other), _, _ in pairs:
        merged = group[one] | group[other]
        group |= dict.fromkeys(merged, merged)
    found = {tuple(name for name in names if name in own) for own in group.values()}
    return sorted((own for own in found if len(own) > 1), key=lambda own: names.index(own[0]))


def _joint(choices: Sequence[_Choice]) -> tuple[Candidate, ...]:
    """Compare joint candidates for some parameters with independent ones."""
    # only rows that all of the parameters have
    rows = choices[0].rows
    for v in choices[1:]:
        rows = np.intersect1d(rows, v.rows)
    own = [np.searchsorted(v.sample.rows, rows) for v in choices]
    X, D = (
        np.column_stack([getattr(v.sample, k)[i] for v, i in zip(choices, own, strict=True)])
        for k in ("x", "d")
    )
    # rounded values are spread over their step, so that they have a density
    rng = np.random.default_rng(0)
    D = D + rng.uniform(-0.5, 0.5, D.shape) * [v.sample.width for v in choices]

    alone = [v.scores[np.searchsorted(v.rows, rows)] for v in choices]
    each = [_chosen(v.candidates).uncertainty for v in choices]
    independent = Product(each, [[j] for j in range(len(each))])
    scored = [_Score("independent", independent, np.mean(alone, axis=0))]
    percent = any(isinstance(v.law, Relative | LogNormal) for v in choices)
    for relative in [False, True] if percent and bool((X != 0).all()) else [False]:
        shares = D / X if relative else D
        is_biased = any(logs.has_bias(column) for column in shares.T)
        families = fam.JOINT_FAMILIES[1 if is_biased else 0 :]  # the first one has no bias
        scored += [_joint_score(f, D, X, relative) for f in families]
    return _rank(tuple(v.sample.name for v in choices), scored, _simplest(scored))


def _joint_score(family: fam.Family, D: Array, X: Array, relative: bool) -> _Score:
    """Fit to deviations (n k), or to shares of the asked values; see ``families.log_density``."""
    n, of, scores = len(D), _folds(len(D)), np.empty(len(D))
    scales = X if relative else np.ones_like(X)
    wide = float(np.log(3 * np.ptp(D, axis=0) + 1e-300).sum())
    for fold in np.unique(of):
        test = of == fold
        law = family.fit((D / scales)[~test])
        # the density of d = s x is that of s, divided by |x|
        log_p = fam.joint_log_density(law, (D / scales)[test])
        log_p = log_p - np.log(np.abs(scales[test])).sum(axis=1)
        scores[test] = np.logaddexp(log_p + np.log1p(-1 / n), -np.log(n) - wide)
    law = family.fit(D / scales)
    name = f"joint, relative: {family.name}" if relative else f"joint: {family.name}"
    return _Score(name, Relative(law) if relative else law, scores / D.shape[1])


# -- the answer


def _proposal(
    choices: Sequence[_Choice], groups: Sequence[tuple[Candidate, ...]]
) -> dict[str | tuple[str, ...], InputUncertainty]:
    # one law per group that is better together, and one per parameter otherwise
    joined = [c for c in map(_chosen, groups) if c.name != "independent"]
    grouped = {name for c in joined for name in c.parameters}
    found: dict[str | tuple[str, ...], InputUncertainty] = {
        v.sample.name: _chosen(v.candidates).uncertainty
        for v in choices
        if v.sample.name not in grouped
    }
    return found | {c.parameters: c.uncertainty for c in joined}


def _assemble(
    proposal: dict[str | tuple[str, ...], InputUncertainty], names: list[str]
) -> InputUncertainty:
    if len(proposal) == 1:
        return next(iter(proposal.values()))
    own = [(key,) if isinstance(key, str) else key for key in proposal]
    columns = [[names.index(name) for name in key] for key in own]
    return Product(list(proposal.values()), columns)


def _text(aspects: Mapping[str, Sequence[Finding]], found: Sequence[Finding]) -> str:
    lines = []
    for name, first in aspects.items():
        rest = [f.text[0].upper() + f.text[1:] for f in found if f.parameters == (name,)]
        lines.append(" ".join([f"{name}: {'; '.join(f.text for f in first)}.", *rest]))
    shared = [f.text for f in found if len(f.parameters) > 1]
    return "\n".join([*lines, *shared])


# -- words


def _short(value: float) -> str:
    """Write a number with three digits."""
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def _share(value: float) -> str:
    return f"{_short(100 * value)}%"


_KINDS = {
    "Exact": "exact", "Normal": "normal", "Uniform": "uniform", "LogNormal": "log-normal",
    "ChiSquared": "skewed", "SciPy": "skewed", "GaussianMixture": "mixture", "Empirical": "log",
}  # fmt: skip
"""What the shapes of candidates are called, by their classes."""


def _aspects(sample: Sample, law: InputUncertainty) -> list[Finding]:
    """Say what the chosen law is: its bias, its shape, and how it depends on the asked value."""
    names = (sample.name,)
    where = f"asked values from {_short(sample.x.min())} to {_short(sample.x.max())}"
    if isinstance(law, Piecewise):
        return [Finding("varying", names, said(law, _show)), Finding("range", names, where)]
    percent = isinstance(law, Relative | LogNormal)
    shape = fam.proposal(law.share if isinstance(law, Relative) else law)
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
    return ", ".join(map(_short, plain))


def _moments(shape: InputUncertainty) -> tuple[float, float]:
    """Return mean and standard deviation of a deviation."""
    origin = torch.zeros(1, 1, dtype=torch.float64)
    return shape.mean(origin).item(), shape.covariance(origin).item() ** 0.5


def _bias(centre: float, percent: bool, sample: Sample, names: tuple[str, ...]) -> Finding:
    # d̄, or the mean of d/x where the law is in percent
    show = _share if percent else _short
    away = sample.x != 0
    values = sample.d[away] / sample.x[away] if percent else sample.d
    mean, _ = mean_and_error(values)
    if not logs.has_bias(values):
        return Finding("no bias", names, "no bias")
    side = "above" if mean > 0 else "below"
    text = f"on average {show(abs(centre or mean))} {side} the asked value (bias)"
    return Finding("bias", names, text)


# -- parameters that depend on each other


def _together(names: tuple[str, str], correlation: float, of_sizes: float) -> Finding:
    """Name two parameters that depend on each other."""
    # r of normal scores z, or else of their sizes |z|
    one, other = names
    if correlation:
        said = f"deviate together (correlation {correlation:.2f})"
    else:
        said = f"deviate at the same time (correlation of the sizes {of_sizes:.2f})"
    return Finding("dependence", names, f"{one} and {other} {said}.")


def _grouped(chosen: Candidate) -> Finding:
    """Say what is proposed for parameters that depend on each other."""
    listed = ", ".join(chosen.parameters)
    if chosen.name == "independent":
        return Finding(
            "independent anyway", chosen.parameters,
            f"{listed}: what fits each of them alone describes the log better than any joint "
            "candidate, so they are proposed as independent.",
        )  # fmt: skip
    return Finding("group", chosen.parameters, f"{listed}: proposed together ({chosen.name}).")


# -- as a campaign file holds it

_WIDTH = 96


def to_toml(uncertainties: Mapping[str | tuple[str, ...], InputUncertainty]) -> str:
    """Return tables for a campaign file: one per parameter, and one per group.

    They have headers of their own, so that they can stand anywhere in a file that describes the
    parameters already.
    """
    lines: list[str] = []
    for names, uncertainty in uncertainties.items():
        fields = _fields(uncertainty)
        if isinstance(names, str):
            lines += _table(f"parameters.{_key(names)}.uncertainty", fields)
        else:
            lines += _table("uncertainty", {"parameters": list(names)} | fields, in_list=True)
    return "\n".join(lines).strip() + "\n"


def _table(header: str, fields: Mapping[str, Any], in_list: bool = False) -> list[str]:
    """Write plain values below the header, then tables inside with headers of their own."""
    lines = [f"[[{header}]]" if in_list else f"[{header}]"]
    inner: list[str] = []
    for key, value in fields.items():
        if isinstance(value, Mapping):
            inner += _table(f"{header}.{_key(key)}", value)
        elif key == "pieces":
            inner += [line for piece in value for line in _table(f"{header}.{key}", piece, True)]
        else:  # numbers, texts and lists look in TOML as they do in JSON
            entry = f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}"
            lines += textwrap.wrap(entry, _WIDTH, subsequent_indent="    ", break_long_words=False,
                                   break_on_hyphens=False)  # fmt: skip
    return [*lines, "", *inner]


def _fields(uncertainty: InputUncertainty) -> dict[str, Any]:
    """Return kind and keys, by the words of the file."""
    if isinstance(uncertainty, Relative) and isinstance(uncertainty.share, Normal | Uniform):
        share = _fields(uncertainty.share)
        if all(isinstance(v, float) for key, v in share.items() if key != "kind"):
            return {k: v if k == "kind" else percent_of(v) for k, v in share.items()}
    if isinstance(uncertainty, LogNormal) and isinstance(uncertainty.sigma, float):
        return {"kind": "lognormal", "sigma": percent_of(uncertainty.sigma)}
    described = uncertainty.to_dict()
    kind = described.pop("kind")
    if isinstance(uncertainty, Piecewise):
        described.pop("column")
        described["pieces"] = [_fields(piece) for piece in uncertainty.pieces]
    if isinstance(uncertainty, SciPy):
        described = {key: value for key, value in described.items() if value}
    if isinstance(uncertainty, Empirical) and uncertainty.dim == 1:
        described["deviations"] = [value for (value,) in uncertainty.deviations]
    if isinstance(uncertainty, Relative):
        described["share"] = _fields(uncertainty.share)
    return {"kind": KINDS[kind].word, **described}


def _key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "")
    return name if bare.isalnum() and bare.isascii() else json.dumps(name, ensure_ascii=False)
