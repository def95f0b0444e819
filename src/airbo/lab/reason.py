"""Why a design is asked for: what is expected there, and what the experiment can bring.

Notation
    m(x), s(x)   mean and standard deviation of what an objective counts by, larger is better
    m*           the largest m of the designs that were tried

Every acquisition weighs the same two terms: m(x) against m*, and s(x). A bound takes m + β s; the
expected gain asks how far an experiment may lift the best mean. So the reason is that m(x) > m*, or
that s(x) leaves room for more, or, where neither holds, what the experiment tells about others.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scipy.stats import norm

from airbo import words
from airbo.lab.file import Settings
from airbo.lab.record import Experiment
from airbo.outcomes import FEASIBLE, Limit, expected_words
from airbo.space import Design
from airbo.space.parameters import Categorical

if TYPE_CHECKING:
    from airbo.optimizer import Optimizer
    from airbo.optimizer.goal import OutcomeModel
    from airbo.optimizer.recommendation import OutcomeEstimate

N_RIVALS = 30
"""Tried designs that the new one is compared with: those with the best observed values."""
CHANCE = 0.1
"""A smaller probability of being better is no reason."""
NEAR = 0.1
"""Experiments closer than this, relative to the range of a parameter, are near."""
UNLIKELY = 0.5
"""A design that keeps a limit with a smaller probability is tried in spite of it."""
FIRST = "One of the first designs, which spread over the ranges."
"""Why an initial design is asked for."""


def reason(
    optimizer: "Optimizer",
    settings: Settings,
    experiments: Sequence[Experiment],
    design: Design,
    given: Mapping[str, Any] | None = None,
) -> str:
    """Say in a sentence why the models chose a design, and then what they expect of it.

    Args:
        optimizer: It chose the design.
        settings: Names and units.
        experiments: Those that its models know.
        design: As it will be tried.
        given: What is known beforehand, as it was asked with.
    """
    models = optimizer.outcome_models(given)
    estimates = {}
    for model in models:
        [estimates[model.goal.name]], _ = model.estimates(model.surrogate.points.of([design]))
    doubtful = [m for m in models if m.is_limit and (estimates[m.goal.name].holds or 0) < UNLIKELY]
    why = _repeated(experiments, design)
    if why is None and doubtful:
        which = words.listed([_limit_words(model, settings) for model in doubtful])
        why = f"Shows where the limits are: it may not keep {which}."
    if why is None:
        aims = [model for model in models if not model.is_limit]
        is_likely, why = _promise(aims, experiments, design)
        if not is_likely:
            why = " ".join([*([why] if why else []), _unknown(settings, experiments, design)])
    said = [_expected(model, settings, estimates[model.goal.name]) for model in models]
    return f"{why} Expected: {'; '.join(said)}."


def _repeated(experiments: Sequence[Experiment], design: Design) -> str | None:
    same = [str(e.number) for e in experiments if e.design == design]
    if not same:
        return None
    which = f"experiment {same[0]}" if len(same) == 1 else f"experiments {words.listed(same)}"
    return f"Repeats {which}, to be sure."


def _promise(
    aims: "Sequence[OutcomeModel]", experiments: Sequence[Experiment], design: Design
) -> tuple[bool, str]:
    """Say whether a design is likely to be better, and in words that it is, or may be."""
    chances = [_chance_of_better(model, experiments, design) for model in aims]
    best = max(chances)
    than = (
        "the best so far" if len(aims) == 1 else f"the best {aims[chances.index(best)].goal.name}"
    )
    if best > 0.5:
        return True, f"Likely better than {than}."
    return False, f"May be better than {than}: probability {best:.2f}." if best >= CHANCE else ""


def _chance_of_better(
    model: "OutcomeModel", experiments: Sequence[Experiment], design: Design
) -> float:
    """Return P(better than the best design tried), by one objective."""
    name, want, points = model.goal.name, model.goal.want, model.surrogate.points
    known = [e for e in experiments if name in e.outcomes]
    best = sorted(known, key=lambda e: -want.merit(e.outcomes[name]))[:N_RIVALS]
    means, stds = model.predict(points.of([design, *(e.design for e in best)]))
    # Φ((m(x) - m*) / s(x)); the factor turns values into what is larger where it is better
    m, s = means / model.factor, stds[0].item() / abs(model.factor)
    return float(norm.cdf((m[0] - m[1:].max()).item() / max(s, 1e-12)))


def _unknown(settings: Settings, experiments: Sequence[Experiment], design: Design) -> str:
    """Say which part of the ranges was hardly tried, or that the design is close to others."""
    for name, parameter in settings.space.parameters.items():
        at = words.value(parameter, design[name])
        if isinstance(parameter, Categorical):
            n = sum(e.design.get(name) == design[name] for e in experiments)
            if n <= 1:
                had = "1 experiment" if n else "no experiment"
                return f"Little is known of {name} {at}: {had} had it."
    away = [(settings.space.distance(e.design, design), e.number) for e in experiments]
    distance, nearest = min(away)
    if distance <= NEAR:
        return f"Tells which way to go from experiment {nearest}, which is close."
    return (
        f"Little is known there: the nearest experiment, {nearest}, differs by "
        f"{words.percent(distance)} of a range."
    )


def _limit_words(model: "OutcomeModel", settings: Settings) -> str:
    name, want = model.goal.name, model.goal.want
    if name == FEASIBLE:
        return "what can be used"
    return f"{name} {words.with_unit(want.where, settings.units.get(name))}"


def _expected(model: "OutcomeModel", settings: Settings, estimate: "OutcomeEstimate") -> str:
    """Write what is expected of one outcome; of a limit, how likely it is kept."""
    name, want = model.goal.name, model.goal.want
    if not isinstance(want, Limit):
        return f"{name} {expected_words(want, estimate, settings.units.get(name))}"
    kept = "works" if name == FEASIBLE else _limit_words(model, settings)
    return f"{kept} with probability {estimate.holds or 0.0:.2f}"
