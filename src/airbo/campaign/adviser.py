"""Which design to use, from the experiments of a campaign."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from airbo.campaign.config import Settings
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import Experiment
from airbo.campaign.optuna import read_uncertainty
from airbo.campaign.study import digits_of
from airbo.digits import as_held
from airbo.measures import Mean
from airbo.observed import VALUE
from airbo.words import quoted

if TYPE_CHECKING:
    from airbo.analysis import Handover, Outlook
    from airbo.optimizer import Optimizer, Recommendation

Policy = Literal["observed", "anywhere"]


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
        if not any(e.counts and (e.value is not None or e.outcomes) for e in self.experiments):
            raise CampaignError("There is nothing to recommend yet: no experiment gave a value.")
        return optimizer_from(self.settings, self.experiments)

    @property
    def is_about_one_value(self) -> bool:
        """Whether one value decides alone: no limits, and no designs that cannot be used."""
        named = self.settings.named
        if named is None:
            return True
        return len(named) == 1 and not any(e.counts and e.infeasible for e in self.experiments)

    @property
    def knows_outlook(self) -> bool:
        """Whether airbo can say what further experiments bring: the mean of one value decides."""
        return self.is_about_one_value and self.settings.measure == Mean()

    def recommend(self, policy: Policy | None = None) -> "Recommendation":
        """Return the design to use; see ``Optimizer.recommend``."""
        self._check_measured()
        return self._held(self.optimizer.recommend(policy))

    def front(self, policy: Policy | None = None) -> "list[Recommendation]":
        """Return the designs that no other one beats by all objectives."""
        self._check_measured()
        return [self._held(best) for best in self.optimizer.front(policy)]

    def _check_measured(self) -> None:
        """Refuse to recommend before every outcome was measured once."""
        outcomes, table = self.settings.outcomes or {}, self.optimizer.observations
        if len(outcomes) < 2 or all(table[name].notna().any() for name in outcomes):
            return
        missing = [name for name in outcomes if not table[name].notna().any()]
        others = {n for e in self.experiments if e.counts for n in e.outcomes} - {*outcomes}
        renamed = (
            f" Experiments measured {quoted(sorted(others))}, which the file does not name."
            if others
            else ""
        )
        raise CampaignError(
            f"There is nothing to recommend yet: no experiment measured {quoted(missing)}.{renamed}"
        )

    def look_ahead(self, tolerance: float | None, policy: Policy | None = None) -> "Outlook":
        """Say what further experiments can bring; see ``Campaign.look_ahead``."""
        from airbo.analysis import look_ahead

        named = self.settings.named is not None
        alone = self.optimizer.of_outcome() if named else self.optimizer
        found = look_ahead(alone, tolerance=tolerance, policy=policy)
        return replace(found, recommendation=self._held(found.recommendation))

    def handover(self, design: Mapping[str, Any]) -> "Handover":
        """Return operating window and tolerance budgets of a design, where there are limits."""
        from airbo.analysis import Handover

        return Handover.of(self.optimizer, design)

    def _held(self, best: "Recommendation") -> "Recommendation":
        best = self._named(best)
        if any(e.counts and e.design == best.design for e in self.experiments):
            return best
        design = as_held(self.settings.space, digits_of(self.settings), best.design)
        return replace(best, design=design)

    def _named(self, best: "Recommendation") -> "Recommendation":
        """Give the only outcome of a file its name."""
        if [*best.outcomes] != [VALUE]:
            return best
        return replace(best, outcomes={self.settings.value_name: best.outcomes[VALUE]})


def optimizer_from(settings: Settings, experiments: Sequence[Experiment]) -> "Optimizer":
    """Return an optimizer that knows some experiments, each under its own uncertainty.

    It has the parameters of the file, in their order and with their units.
    """
    from airbo.optimizer import Optimizer

    optimizer = Optimizer(
        settings.space,
        settings.uncertainty,
        settings.direction,
        settings.surrogate,
        settings.acquisition,
        settings.seed,
        deployment=settings.deployment,
        n_initial=settings.n_initial,
        measure=None if settings.outcomes else settings.measure,
        noise=settings.noise,
        outcomes=settings.outcomes,
    )
    for e in experiments:
        if e.counts and (told := _told(settings, e)) != {}:
            infeasible = e.infeasible and settings.outcomes is not None
            try:
                under = None if e.uncertainty is None else read_uncertainty(e.uncertainty)
                given = (e.design, told, e.executed, under)
                optimizer.tell(*given, allow_outside=True, infeasible=infeasible)
            except ValueError as error:
                raise CampaignError(
                    f"No model can use experiment {e.number}: {error} Correct it, or leave it out "
                    f"of the model: airbo exclude {e.number} --why TEXT."
                ) from None
    for e in experiments:
        if e.is_pending:
            optimizer.expect(e.design, allow_outside=True)
    return optimizer


def _told(settings: Settings, e: Experiment) -> Any:
    """Return what an experiment gave, as an optimizer is told it.

    One that was told before the file had names for outcomes has the value of the first objective.
    One that measured only what the file no longer names gave nothing: an empty dict.
    """
    if settings.outcomes is None or (e.value is None and not e.outcomes):
        return e.value
    measured = e.measured(settings.value_name).items()
    return {name: value for name, value in measured if name in settings.outcomes}
