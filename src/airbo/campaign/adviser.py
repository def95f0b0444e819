"""Which design to use, from the experiments of a campaign."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from airbo.campaign.config import Settings
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import Experiment
from airbo.campaign.study import digits_of
from airbo.digits import as_held
from airbo.integrations.optuna import read_uncertainty

if TYPE_CHECKING:
    from airbo.optimizer import Optimizer, Recommendation
    from airbo.optimizer.handover import Handover
    from airbo.optimizer.outlook import Outlook

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

    def recommend(self, policy: Policy | None = None) -> "Recommendation":
        """Return the design to use; see ``Optimizer.recommend``."""
        return self._held(self.optimizer.recommend(policy))

    def front(self, policy: Policy | None = None) -> "list[Recommendation]":
        """Return the designs that no other one beats by all objectives."""
        return [self._held(best) for best in self.optimizer.front(policy)]

    def look_ahead(self, tolerance: float | None, policy: Policy | None = None) -> "Outlook":
        """Say what further experiments can bring; see ``Campaign.look_ahead``."""
        from airbo.optimizer.outlook import look_ahead

        found = look_ahead(self.optimizer, tolerance=tolerance, policy=policy)
        return replace(found, recommendation=self._held(found.recommendation))

    def handover(self, design: Mapping[str, Any]) -> "Handover":
        """Return operating window and tolerance budgets of a design, where there are limits."""
        from airbo.optimizer.handover import Handover

        return Handover.of(self.optimizer, design)

    def _held(self, best: "Recommendation") -> "Recommendation":
        if any(e.counts and e.design == best.design for e in self.experiments):
            return best
        design = as_held(self.settings.space, digits_of(self.settings), best.design)
        return replace(best, design=design)


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
        if e.counts:
            infeasible = e.infeasible and settings.outcomes is not None
            try:
                under = None if e.uncertainty is None else read_uncertainty(e.uncertainty)
                told = (e.design, _told(settings, e), e.executed, under)
                optimizer.tell(*told, allow_outside=True, infeasible=infeasible)
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
    """
    if settings.outcomes is None or (e.value is None and not e.outcomes):
        return e.value
    known = {name: value for name, value in e.outcomes.items() if name in settings.outcomes}
    return known or ({settings.value_name: e.value} if e.value is not None else None)
