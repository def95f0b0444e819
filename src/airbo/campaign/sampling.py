"""Who chooses the designs of a campaign, and who judges them."""

from collections.abc import Sequence

from airbo.campaign.distributions import distributions_of
from airbo.campaign.experiments import Experiment
from airbo.campaign.settings import Settings
from airbo.integrations.optuna import AIRBOSampler, read_uncertainty
from airbo.optimizer import Optimizer


def sampler_of(settings: Settings) -> AIRBOSampler:
    """Return the sampler that the file describes."""
    return AIRBOSampler(
        settings.uncertainty,
        deployment=settings.deployment,
        surrogate=settings.surrogate,
        acquisition=settings.acquisition,
        n_startup_trials=settings.n_initial,
        search_space=distributions_of(settings.space),
        seed=settings.seed,
    )


def optimizer_from(settings: Settings, experiments: Sequence[Experiment]) -> Optimizer:
    """Return an optimizer that knows some experiments, each under its own uncertainty.

    It has the parameters of the file, in their order and with their units.
    """
    optimizer = Optimizer(
        settings.space,
        settings.uncertainty,
        settings.direction,
        settings.surrogate,
        settings.acquisition,
        settings.seed,
        deployment=settings.deployment,
        n_initial=settings.n_initial,
    )
    for e in experiments:
        if e.has_outcome:
            under = None if e.uncertainty is None else read_uncertainty(e.uncertainty)
            optimizer.tell(e.design, e.value, e.executed, under, allow_outside=True)
    for e in experiments:
        if e.is_pending:
            optimizer.expect(e.design, allow_outside=True)
    return optimizer
