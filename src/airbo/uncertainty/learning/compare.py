"""Candidates are compared by how likely they make rows that they have not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special

from airbo.uncertainty.base import InputUncertainty
from airbo.uncertainty.learning.models import Family, Model, families
from airbo.uncertainty.learning.sample import Array, Rows, Sample, blocks, mean_and_error

N_FOLDS = 5
ALIKE = 0.01
"""Differences below this, in nats per value, matter to nobody."""


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
class Scored:
    """A candidate under comparison."""

    name: str
    n_numbers: int
    scores: Array
    """Held-out log likelihood per value, row by row."""


@dataclass(frozen=True)
class Verdict:
    """What one parameter looks like."""

    sample: Sample
    candidates: tuple[Candidate, ...]
    model: Model
    """The chosen one, fitted to all rows."""
    scores: Array
    """Its held-out log likelihood, row by row."""

    @property
    def chosen(self) -> Candidate:
        """Return the proposal."""
        return next(c for c in self.candidates if c.chosen)

    def normal_scores(self) -> Array:
        """Return the deviations as numbers that would be standard normal under the model."""
        # z = Φ⁻¹(P(δ < d - w/2) + ½ P(d ± w/2)), w the step to which d was rounded
        s, half = self.sample, self.sample.width / 2
        far = np.full_like(s.d, -1e300)
        below = self.model.probability(s.x, far, s.d - half)
        inside = self.model.probability(s.x, s.d - half, s.d + half)
        u = np.clip(below + inside / 2, 0.5 / len(s), 1 - 0.5 / len(s))
        return np.asarray(scipy.special.ndtri(u))


def judged(sample: Sample) -> Verdict:
    """Compare all candidates for one parameter."""
    known = families(sample)
    fitted = [f.fit(sample) for f in known]
    made = [model.uncertainty() for model in fitted]
    # steps that find no edge, and the like, are another candidate again
    new = [i for i, u in enumerate(made) if u not in made[:i]]
    scored = [Scored(known[i].name, known[i].n_numbers, _held_out(known[i], sample)) for i in new]
    best = choice(scored)
    listed = ranked((sample.name,), scored, [made[i] for i in new], best)
    return Verdict(sample, listed, fitted[new[best]], scored[best].scores)


def folds(n: int) -> Rows:
    """Return the fold of each row: neighbours share one, since they often deviate alike."""
    return blocks(n) % min(N_FOLDS, n)


def _held_out(family: Family, sample: Sample) -> Array:
    scores = np.empty(len(sample))
    of = folds(len(sample))
    for fold in np.unique(of):
        test = of == fold
        model = family.fit(sample.at(~test))
        scores[test] = log_density(model, sample, sample.at(test))
    return scores


def log_density(model: Model, sample: Sample, rows: Sample) -> Array:
    """Return the log density of deviations, each known up to the width of the log.

    p = (1 - ε) P(d ± w/2) / w + ε / W: one row in n may be what no model explains, anywhere
    in three times the range. So a single value far off does not decide.
    """
    w, n = sample.width, len(sample)
    p = model.probability(rows.x, rows.d - w / 2, rows.d + w / 2)
    wide = 3 * max(float(np.ptp(sample.d)), w)
    return np.asarray(np.log((1 - 1 / n) * np.maximum(p, 0) / w + 1 / (n * wide)))


def choice(scored: Sequence[Scored]) -> int:
    """Return the simplest candidate that is as good as the best: within one standard error."""
    top = max(scored, key=lambda s: float(s.scores.mean())).scores

    def is_as_good(s: Scored) -> bool:
        difference, error = mean_and_error(s.scores - top)
        return difference >= -max(error, ALIKE) or s.scores is top

    fit = [i for i, s in enumerate(scored) if is_as_good(s)]
    return min(fit, key=lambda i: (scored[i].n_numbers, -float(scored[i].scores.mean())))


def ranked(
    names: tuple[str, ...],
    scored: Sequence[Scored],
    made: Sequence[InputUncertainty],
    chosen: int,
) -> tuple[Candidate, ...]:
    """Return the candidates, the best first."""
    top = max(scored, key=lambda s: float(s.scores.mean())).scores
    found = []
    for i, (s, uncertainty) in enumerate(zip(scored, made, strict=True)):
        difference, error = (0.0, 0.0) if s.scores is top else mean_and_error(s.scores - top)
        found.append(
            Candidate(
                names, s.name, float(s.scores.mean()), difference, error, s.n_numbers,
                i == chosen, uncertainty,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda c: -c.log_likelihood))
