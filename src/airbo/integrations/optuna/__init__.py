"""Optuna studies whose parameters cannot be set exactly: a sampler, and the robust answer.

>>> import optuna
>>> from airbo import uncertainty as unc
>>> from airbo.integrations.optuna import AIRBOSampler
>>> sampler = AIRBOSampler({"x": unc.Normal(0.1)}, seed=0)
>>> study = optuna.create_study(direction="maximize", sampler=sampler)
"""

from airbo.integrations.optuna.sampler import (
    AIRBOSampler,
    front,
    optimizer_of,
    recommend,
    robust_trial,
)
from airbo.integrations.optuna.search_space import distributions_of
from airbo.integrations.optuna.trials import (
    EXECUTED,
    GAVE_UP,
    OUTCOMES,
    UNCERTAINTY,
    StudyTrial,
    read_study,
)
from airbo.uncertainty.kinds import describe_uncertainty, read_uncertainty

__all__ = [
    "EXECUTED",
    "GAVE_UP",
    "OUTCOMES",
    "UNCERTAINTY",
    "AIRBOSampler",
    "StudyTrial",
    "describe_uncertainty",
    "distributions_of",
    "front",
    "optimizer_of",
    "read_study",
    "read_uncertainty",
    "recommend",
    "robust_trial",
]
