"""The design with the best expected value of a study, rather than its luckiest trial."""

import copy
from dataclasses import replace
from typing import Literal

from optuna.study import Study
from optuna.trial import FrozenTrial

from airbo.campaign.optuna.sampler import AIRBOSampler
from airbo.optimizer import Optimizer, Recommendation


def optimizer_of(study: Study, sampler: AIRBOSampler | None = None) -> Optimizer:
    """Return an optimizer with the observations of a study; changing it leaves the study as it is.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
    """
    _, optimizer = _sampler(study, sampler).look(study)
    return optimizer


def recommend(
    study: Study,
    *,
    sampler: AIRBOSampler | None = None,
    policy: Literal["observed", "anywhere"] | None = None,
) -> Recommendation:
    """Return the design with the best expected value, and what to expect of it.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
        policy: Where to look; see ``airbo.Optimizer.recommend``.
    """
    trials, optimizer = _sampler(study, sampler).look(study)
    best = optimizer.recommend(policy)
    return replace(best, design=trials.space.params(best.design))


def front(
    study: Study,
    *,
    sampler: AIRBOSampler | None = None,
    policy: Literal["observed", "anywhere"] | None = None,
) -> list[Recommendation]:
    """Return the designs that keep all constraints and that no other one beats in expectation.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
        policy: Where to look; see ``airbo.Optimizer.recommend``.
    """
    trials, optimizer = _sampler(study, sampler).look(study)
    return [replace(r, design=trials.space.params(r.design)) for r in optimizer.front(policy)]


def robust_trial(study: Study, *, sampler: AIRBOSampler | None = None) -> FrozenTrial:
    """Return the trial whose parameters have the best expected value.

    ``study.best_trial`` is the one with the best value so far, which may have been luck.

    Args:
        study: The study.
        sampler: Says what the uncertainty is and which model to use; by default the study's own.
    """
    trials, optimizer = _sampler(study, sampler).look(study)
    best = optimizer.recommend("observed").design
    for told in trials.told:
        design = optimizer.space.checked(told.design, allow_outside=True)
        if told.value is not None and design == best:
            return copy.deepcopy(told.trial)
    raise AssertionError(f"No trial has the recommended design {best}.")


def _sampler(study: Study, given: AIRBOSampler | None) -> AIRBOSampler:
    sampler = study.sampler if given is None else given
    if not isinstance(sampler, AIRBOSampler):
        raise TypeError(
            "The study needs an AIRBOSampler. Create it with one, or pass one as sampler=...; "
            f"got {type(sampler).__name__}."
        )
    return sampler
