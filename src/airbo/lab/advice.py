"""Which design to use, from the experiments of a campaign."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from airbo.lab.digits import as_held, digits_of
from airbo.lab.errors import CampaignError
from airbo.lab.file import Settings
from airbo.lab.record import Experiment
from airbo.measures import InSpec, Mean
from airbo.outcomes import FEASIBLE, objectives
from airbo.space import Design
from airbo.uncertainty.kinds import read_uncertainty
from airbo.words import percent, quoted

if TYPE_CHECKING:
    from airbo.analysis import Handover, Outlook
    from airbo.lab.prediction import Prediction
    from airbo.optimizer import Optimizer, Recommendation

Policy = Literal["observed", "anywhere"]
Given = Mapping[str, Any] | None
"""What is known before an experiment: of the environment, and of the design itself."""


@dataclass(frozen=True)
class Answer:
    """Which design to use, and what goes with it."""

    best: "Recommendation"
    given: Mapping[str, Any]
    """What was known beforehand."""
    outlook: "Outlook | None"
    """What more experiments can bring; None: airbo cannot say."""
    handover: "Handover"
    caution: str
    """A warning where no experiment is near; empty where one is."""
    is_about_one_value: bool


@dataclass(frozen=True)
class Adviser:
    """Recommends designs; one that nobody has tried has the digits that the machine can hold."""

    settings: Settings
    experiments: Sequence[Experiment]

    @cached_property
    def optimizer(self) -> "Optimizer":
        """An optimizer that knows the experiments.

        Raises:
            CampaignError: If no experiment gave a value.
        """
        if not any(e.outcomes for e in modelled(self.settings, self.experiments)):
            raise CampaignError("There is nothing to recommend yet: no experiment gave a value.")
        return optimizer_from(self.settings, self.experiments)

    @property
    def is_about_one_value(self) -> bool:
        """Whether one value decides alone: no limits, and no designs that cannot be used."""
        unusable = any(e.counts and e.infeasible for e in self.experiments)
        return self.settings.is_single and not unusable

    @property
    def knows_outlook(self) -> bool:
        """Whether airbo can say what further experiments bring: the mean of one value decides."""
        return self.is_about_one_value and self.settings.measure == Mean()

    def recommend(self, policy: Policy | None = None, given: Given = None) -> "Recommendation":
        """Return the design to use; see ``Optimizer.recommend``."""
        self._check_measured()
        known = check_given(self.settings, given)
        try:
            best = self.optimizer.recommend(policy, given=known)
        except ValueError as error:  # no experiment has what is given
            raise CampaignError(str(error)) from None
        return self._with_share(held(self.optimizer, best, known))

    def answer(
        self, policy: Policy | None = None, tolerance: float | None = None, given: Given = None
    ) -> Answer:
        """Return the design to use with all that goes with it.

        Args:
            policy: As for ``recommend``.
            tolerance: A difference of expected values that does not matter to you; by default a
                twentieth of the range of the observed values.
            given: As for ``recommend``.
        """
        from airbo.analysis import Handover, look_ahead

        known, outlook = check_given(self.settings, given), None
        if self.knows_outlook:
            try:
                outlook = look_ahead(
                    self.optimizer, tolerance=tolerance, policy=policy, given=known
                )
            except ValueError as error:  # no experiment has what is given
                raise CampaignError(str(error)) from None
            best = self._with_share(held(self.optimizer, outlook.recommendation, known))
        else:
            best = self.recommend(policy, known)
        handover = Handover.of(self.optimizer, best.design, known)
        caution = self._caution(best.design)
        return Answer(best, known, outlook, handover, caution, self.is_about_one_value)

    def front(self, policy: Policy | None = None, given: Given = None) -> "list[Recommendation]":
        """Return the designs that no other one beats by all objectives."""
        self._check_measured()
        known = check_given(self.settings, given)
        found = self.optimizer.front(policy, given=known)
        return [self._with_share(held(self.optimizer, best, known, False)) for best in found]

    def _check_measured(self) -> None:
        """Refuse to recommend before every outcome was measured once."""
        outcomes = self.settings.outcomes
        there = {name for e in self.experiments if e.counts for name in e.outcomes}
        missing = [name for name in outcomes if name not in there]
        if not missing or not there & {*outcomes}:
            return
        said = f"There is nothing to recommend yet: no experiment measured {quoted(missing)}."
        if others := there - {*outcomes}:
            said += f" Experiments measured {quoted(sorted(others))}, which the file does not name."
        raise CampaignError(said)

    def predict(self, design: Mapping[str, Any], allow_outside: bool = False) -> "Prediction":
        """Return what to expect at a design; see ``Campaign.predict``."""
        from airbo.lab.prediction import predict

        self._check_measured()
        space = self.settings.space
        around = {name: value for name, value in design.items() if name in space.environment}
        given = check_given(self.settings, around)
        design = {name: value for name, value in design.items() if name not in around}
        if set(space.names) - set(design):
            design = {**self.recommend(given=given).design, **design}
        try:
            plain = space.checked(design, allow_outside)
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None
        known = [e for e in modelled(self.settings, self.experiments) if e.outcomes]
        return predict(self.optimizer, known, plain, given)

    def _caution(self, design: Design) -> str:
        """Warn where no experiment is near a design; empty where one is."""
        from airbo.lab.prediction import FAR, nearest

        known = [e for e in modelled(self.settings, self.experiments) if e.outcomes]
        number, away = nearest(self.settings.space, known, design)[0]
        if away <= FAR:
            return ""
        return (
            f"No experiment is near this design: the nearest one, {number}, differs by "
            f"{percent(away)} of a range. What is expected here rests on experiments "
            "far away. Try it before you rely on it, or use --tried."
        )

    def _with_share(self, best: "Recommendation") -> "Recommendation":
        """Give a share in spec one number: that of its capability."""
        found = dict(best.outcomes)
        for name, want in objectives(self.settings.outcomes).items():
            capability = found[name].capability
            if isinstance(want.measure, InSpec) and capability is not None:
                share, std = capability.share, capability.share_std
                found[name] = replace(found[name], mean=share, std=std)
        main = found[self.settings.value_name]
        return replace(best, mean=main.mean, std=main.std, outcomes=found)


def held(
    optimizer: "Optimizer", best: "Recommendation", given: Mapping[str, Any], anew: bool = True
) -> "Recommendation":
    """Return a recommendation of the design that the machine can hold; one that was tried stays.

    Args:
        optimizer: It made the recommendation.
        best: The recommendation.
        given: What it was made with.
        anew: Whether to work out what to expect of the rounded design.
    """
    space = optimizer.space
    design = as_held(space, digits_of(space, optimizer.uncertainty), best.design, given)
    tried = optimizer.observations[list(space.names)].to_dict("records")
    if design == best.design or best.design in tried:
        return best
    if not anew:
        return replace(best, design=design)
    found = {}
    for model in optimizer.outcome_models(given):
        [estimate], _ = model.estimates(model.surrogate.points.of([design]))
        own = estimate.with_capability(*model.capabilities([design]))
        name = model.goal.name
        found[name] = replace(own, capability=None) if name == FEASIBLE else own
    main = found[next(iter(objectives(optimizer.outcomes)))]
    best = replace(best, mean=main.mean, std=main.std, capability=main.capability)
    return replace(best, design=design, outcomes=found)


def check_given(settings: Settings, given: Given) -> dict[str, Any]:
    """Return what is known beforehand, of the environment and of the design, as plain values.

    Raises:
        CampaignError: If it cannot be, or if nobody knows what an environment will be.
    """
    try:
        known = settings.space.checked_given(given or {})
        settings.space.without({n: v for n, v in known.items() if n in settings.space.names})
    except (ValueError, TypeError) as error:
        raise CampaignError(str(error)) from None
    used = settings.uncertainties_in_use or settings.uncertainties
    lawful = {name for u in used for name in u.names}
    for name in settings.space.environment:
        if name not in known and name not in lawful:
            raise CampaignError(
                f"{name!r} has no law, so airbo cannot know what to expect. Say what it is today, "
                f"as in --given {name}=50, or write a law into the file."
            )
    return known


def modelled(settings: Settings, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments that a model learns from, in the order in which it does.

    One that measured only what the file no longer names gave nothing.
    """
    return [
        e
        for e in experiments
        if e.counts and (e.outcome == "failed" or set(e.outcomes) & set(settings.outcomes))
    ]


def optimizer_from(settings: Settings, experiments: Sequence[Experiment]) -> "Optimizer":
    """Return an optimizer that knows some experiments, each under its own uncertainty."""
    from airbo.optimizer import Optimizer

    optimizer = Optimizer(
        settings.space,
        settings.uncertainty,
        surrogate=settings.surrogate,
        acquisition=settings.acquisition,
        seed=settings.seed,
        deployment=settings.deployment,
        n_initial=settings.n_initial,
        noise=settings.noise,
        outcomes=dict(settings.outcomes),
    )
    # an environment that the file got later has its law in earlier experiments, too
    laws = read_uncertainty([law.described() for law in settings.laws])
    for e in modelled(settings, experiments):
        told = {name: value for name, value in e.outcomes.items() if name in settings.outcomes}
        try:
            under = None if e.uncertainty is None else {**laws, **read_uncertainty(e.uncertainty)}
            known = {name: std for name, std in e.noise.items() if name in told}
            optimizer.tell(
                e.design, told or None, e.executed, under,
                allow_outside=True, infeasible=e.infeasible, noise=known or None,
            )  # fmt: skip
        except ValueError as error:
            raise CampaignError(
                f"No model can use experiment {e.number}: {error} Correct it, or leave it out of "
                f"the model: airbo exclude {e.number} --why TEXT."
            ) from None
    for e in experiments:
        if e.is_pending:
            optimizer.expect(e.design, allow_outside=True, given=e.given)
    return optimizer
