"""Optuna studies whose parameters cannot be set exactly: a sampler, and the robust answer.

>>> import optuna
>>> from airbo import uncertainty as unc
>>> from airbo.campaign.optuna import AIRBOSampler
>>> sampler = AIRBOSampler({"x": unc.Normal(0.1)}, seed=0)
>>> study = optuna.create_study(direction="maximize", sampler=sampler)
"""

import importlib
from typing import TYPE_CHECKING, Any

from airbo.campaign.optuna.attributes import (
    EXECUTED,
    GAVE_UP,
    UNCERTAINTY,
    describe_uncertainty,
    read_uncertainty,
)
from airbo.campaign.optuna.counting import REPLACED
from airbo.campaign.optuna.search_space import distributions_of

if TYPE_CHECKING:
    from airbo.campaign.optuna.answers import front, optimizer_of, recommend, robust_trial
    from airbo.campaign.optuna.sampler import AIRBOSampler

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
    """Import the names that need PyTorch on first use, so that reading a study stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
