"""Optuna studies whose parameters are not hit exactly: a sampler, and the robust answer.

>>> import optuna
>>> from airbo import uncertainty as unc
>>> from airbo.integrations.optuna import AIRBOSampler
>>> sampler = AIRBOSampler({"x": unc.Normal(0.1)}, seed=0)
>>> study = optuna.create_study(direction="maximize", sampler=sampler)
"""

from airbo.integrations.optuna.answers import optimizer_of, recommend, robust_trial
from airbo.integrations.optuna.attributes import (
    EXECUTED,
    GAVE_UP,
    UNCERTAINTY,
    describe_uncertainty,
    read_uncertainty,
)
from airbo.integrations.optuna.counting import REPLACED
from airbo.integrations.optuna.sampler import AIRBOSampler
from airbo.integrations.optuna.search_space import distributions_of

__all__ = [
    "EXECUTED",
    "GAVE_UP",
    "REPLACED",
    "UNCERTAINTY",
    "AIRBOSampler",
    "describe_uncertainty",
    "distributions_of",
    "optimizer_of",
    "read_uncertainty",
    "recommend",
    "robust_trial",
]
