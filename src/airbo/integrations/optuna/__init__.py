"""Optuna studies whose parameters are not hit exactly: a sampler, and the robust answer.

>>> import optuna
>>> from airbo import uncertainty as unc
>>> from airbo.integrations.optuna import AIRBOSampler
>>> sampler = AIRBOSampler({"x": unc.Normal(0.1)}, seed=0)
>>> study = optuna.create_study(direction="maximize", sampler=sampler)
"""

import importlib
from typing import TYPE_CHECKING, Any

from airbo.integrations.optuna.attributes import (
    EXECUTED,
    GAVE_UP,
    UNCERTAINTY,
    describe_uncertainty,
    read_uncertainty,
)
from airbo.integrations.optuna.counting import REPLACED
from airbo.integrations.optuna.search_space import distributions_of

if TYPE_CHECKING:
    from airbo.integrations.optuna.answers import front, optimizer_of, recommend, robust_trial
    from airbo.integrations.optuna.sampler import AIRBOSampler

__all__ = [
    "EXECUTED",
    "GAVE_UP",
    "REPLACED",
    "UNCERTAINTY",
    "AIRBOSampler",
    "describe_uncertainty",
    "distributions_of",
    "front",
    "optimizer_of",
    "read_uncertainty",
    "recommend",
    "robust_trial",
]

_HOMES = {
    "AIRBOSampler": "sampler",
    "front": "answers",
    "optimizer_of": "answers",
    "recommend": "answers",
    "robust_trial": "answers",
}


def __getattr__(name: str) -> Any:
    """Import what needs a model when it is used: reading a study does not need PyTorch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
