"""What to expect at given settings, and why a design is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from scipy.stats import norm

from airbo import words
from airbo.lab.file import Settings
from airbo.lab.record import Experiment
from airbo.measures import Mean, Target
from airbo.measures.capability import middle_90
from airbo.outcomes import FEASIBLE, Limit, Want, expected_words
from airbo.space import Design, Space
from airbo.space.parameters import Categorical

if TYPE_CHECKING:
    import pandas as pd

    from airbo.optimizer import Evaluation, Optimizer
    from airbo.optimizer.goal import OutcomeModel
    from airbo.optimizer.recommendation import OutcomeEstimate

FAR = 0.25
"""Where the nearest experiment is farther away, in ranges, a prediction rests on nothing nearby."""
N_NEAREST = 3

Interval = tuple[float, float]
"""What holds 90 of 100 cases."""


@dataclass(frozen=True)
class OutcomePrediction:
    """What the model predicts of one outcome."""

    mean: float
    """Expected value: the mean of many runs, wherever the design lands."""
    std: float
    """Its standard deviation (model uncertainty)."""
    interval: Interval
    """Of the expected value."""
    single_run: Interval | None
    """Where a single run in use lies; None: the surrogate cannot say."""
    decides: "Evaluation | None" = None
    """What the outcome counts by, where that is not its mean; with Cpk and ppm of limits."""
    holds: float | None = None
    """Of a limit: the probability that it is kept as often as the file asks for."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON."""
        found: dict[str, Any] = {"mean": self.mean, "std": self.std, "interval": self.interval}
        found["single_run"] = self.single_run
        if self.decides is not None:
            d = self.decides
            own = {"mean": d.mean, "std": d.std, "interval": d.interval}
            found["decides"] = {"measure": d.measure.to_dict(), **own}
            found |= {} if d.capability is None else asdict(d.capability)
        return found if self.holds is None else {**found, "holds": self.holds}


@dataclass(frozen=True)
class Prediction:
    """What to expect at one design."""

    design: Design
    outcomes: Mapping[str, OutcomePrediction]
    nearest: Sequence[tuple[int, float]]
    """Numbers of the nearest experiments, and how far each is: the largest difference of a
    parameter, relative to its range; 1 for another choice."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the environment."""

    @property
    def is_far(self) -> bool:
        """Whether no experiment is near."""
        return not self.nearest or self.nearest[0][1] > FAR

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "design": dict(self.design),
            **({"given": dict(self.given)} if self.given else {}),
            "outcomes": {name: found.to_dict() for name, found in self.outcomes.items()},
            "nearest": [{"number": number, "distance": away} for number, away in self.nearest],
        }


def predict(
    optimizer: "Optimizer",
    experiments: Sequence[Experiment],
    design: Mapping[str, Any],
    given: Mapping[str, Any] | None = None,
) -> Prediction:
    """Predict all outcomes of a design.

    Args:
        optimizer: It is not changed.
        experiments: Those that it knows.
        design: Any design, also outside the ranges.
        given: What is known of the environment.
    """
    plain = optimizer.space.checked(design, allow_outside=True)
    known = dict(given or {})
    names = [model.goal.name for model in optimizer.outcome_models(known)]
    found = {name: _outcome(optimizer, plain, name, known) for name in names}
    return Prediction(plain, found, nearest(optimizer.space, experiments, plain), known)


def nearest(
    space: Space, experiments: Sequence[Experiment], design: Design
) -> list[tuple[int, float]]:
    """Return numbers of the nearest experiments, and how far each is; see ``Prediction``."""
    away = sorted((space.distance(e.design, design), e.number) for e in experiments)
    return [(number, d) for d, number in away[:N_NEAREST]]


def _outcome(
    optimizer: "Optimizer", design: Design, name: str, given: Mapping[str, Any]
) -> OutcomePrediction:
    expected = optimizer.evaluate(design, Mean(), outcome=name, given=given)
    model = optimizer.outcome_model(name, given=given)
    single = None if name == FEASIBLE else single_run(optimizer, design, name, given)
    common = (expected.mean, expected.std, expected.interval, single)
    if model.is_mean:
        return OutcomePrediction(*common)
    [estimate], _ = model.estimates(model.surrogate.points.of([design]))
    return OutcomePrediction(*common, model.evaluate(design), estimate.holds)


def single_run(
    optimizer: "Optimizer", design: Design, name: str, given: Mapping[str, Any] | None = None
) -> Interval | None:
    """Return where 9 of 10 single runs in use lie, with noise, and with what is not known.

    They scatter around the expected value, so they reach at least as far as it may lie.
    """
    from airbo.models.draws import has_function
    from airbo.models.noise import unseen_input_noise

    model = optimizer.outcome_model(name, Mean(), given=given)
    is_noise_known = unseen_input_noise(model.model.likelihood) is not None  # apart from P_x
    if is_noise_known and has_function(model.model):
        noisy = optimizer.outcome_model(name, Mean(), noise="product", given=given)
        low, high = middle_90(noisy.values(design).flatten())  # by a few hundred draws of f
        least, most = model.evaluate(design).interval
        return min(low, least), max(high, most)
    if optimizer.deployment != optimizer.uncertainty:
        return None
    posterior = model.model.posterior(model.surrogate.points.of([design]), observation_noise=True)
    mean, std = (model.factor * v.item() for v in (posterior.mean, posterior.variance.sqrt()))
    return mean - words.NORMAL_90 * abs(std), mean + words.NORMAL_90 * abs(std)


# -- in words


def sentences(settings: Settings, found: Prediction) -> list[str]:
    """Say what to expect, one sentence or two per outcome, and what it is based on."""
    return [
        *(
            f"{name}: {outcome_words(settings.outcomes.get(name), p, settings.units.get(name))}"
            for name, p in found.outcomes.items()
        ),
        nearest_words(found),
    ]


def outcome_words(want: Want | None, found: OutcomePrediction, unit: str | None) -> str:
    """Say what to expect of one outcome."""
    if want is None:  # whether the design can be used
        share = found.decides.mean if found.decides else found.mean
        return f"{words.percent(share)} of executed inputs work."
    said = f"expected {_range(found.mean, found.interval, unit)}."
    if found.single_run is not None:
        said += (
            f" 9 of 10 single runs give {words.with_unit(words.between(*found.single_run), unit)}."
        )
    decides = found.decides
    if decides is None:
        return said
    if decides.capability is not None:
        said += f" {decides.capability.words}."
    elif isinstance(decides.measure, Target):
        away = words.with_unit(words.number(max(0.0, -decides.mean) ** 0.5, 3), unit)
        said += (
            f" Typically {away} away from {words.with_unit(f'{decides.measure.value:g}', unit)}."
        )
    else:
        said += f" {_range(decides.mean, decides.interval, unit)}: the {decides.measure.words}."
    if isinstance(want, Limit):
        said += (
            f" Required: {words.with_unit(want.where, unit)} for "
            f"{100 * want.probability:.12g}% of executed inputs; the probability that the design "
            f"meets this is {found.holds:.2f}."
        )
    return said


def _range(mean: float, interval: Interval, unit: str | None) -> str:
    """Write a number with its interval: 37.3 (34.3 to 40.3) mm."""
    return words.with_unit(words.around(mean, *interval), unit)


def nearest_words(found: Prediction) -> str:
    """Say which experiments are near, and warn where none is."""
    if not found.nearest:
        return "There is no experiment to compare it with."
    listed = words.listed([f"{n} ({words.percent(d)})" for n, d in found.nearest])
    said = f"Nearest experiments, with their distance in ranges of the parameters: {listed}."
    if found.is_far:
        said += " None is near: these numbers rest on experiments far away."
    if len(found.nearest) < N_NEAREST:
        said += f" With fewer than {N_NEAREST} experiments airbo cannot know how values vary: do "
        said += "not rely on the intervals."
    return said


def as_table(predictions: Sequence[Prediction]) -> "pd.DataFrame":
    """Return a table: designs, what to expect of each outcome, and the nearest experiment."""
    import pandas as pd

    rows = []
    for found in predictions:
        row: dict[str, Any] = {**found.design, **found.given}
        for name, p in found.outcomes.items():
            row |= {name: p.mean, f"{name}_low": p.interval[0], f"{name}_high": p.interval[1]}
            if p.single_run is not None:
                row |= {f"{name}_run_low": p.single_run[0], f"{name}_run_high": p.single_run[1]}
            if p.decides is not None and p.decides.capability is not None:
                row[f"{name}_in_spec"] = p.decides.capability.share
        if found.nearest:
            row |= {"nearest": found.nearest[0][0], "distance": found.nearest[0][1]}
        rows.append(row)
    return pd.DataFrame(rows)


# -- why a design is asked for
#
# m(x), s(x): mean and standard deviation of what an objective counts by, larger is better;
# m*: the largest m of the designs that were tried. Every acquisition weighs m(x) against m*, and
# s(x): a bound takes m + β s; the expected gain asks how far an experiment may lift the best mean.
# So the reason is that m(x) > m*, or that s(x) leaves room for more, or, where neither holds, what
# the experiment tells about others.

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
        [estimate], _ = model.estimates(model.surrogate.points.of([design]))
        if not model.is_limit:
            estimate = estimate.with_capability(*model.capabilities([design]))
        estimates[model.goal.name] = estimate
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
