"""Bayesian optimization when the input you ask for is not the input you get."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airbo.lab import Campaign
    from airbo.optimizer import Optimizer
    from airbo.optimizer.recommendation import Recommendation, TooLittleDataWarning
    from airbo.outcomes import AtLeast, AtMost, Between, Maximize, Minimize
    from airbo.run import ExperimentError, Result, maximize, minimize
    from airbo.space import Space
    from airbo.space.parameters import Categorical, Environment, Float, Integer

__version__ = "0.2.0"
__all__ = [
    "AtLeast",
    "AtMost",
    "Between",
    "Campaign",
    "Categorical",
    "Environment",
    "ExperimentError",
    "Float",
    "Integer",
    "Maximize",
    "Minimize",
    "Optimizer",
    "Recommendation",
    "Result",
    "Space",
    "TooLittleDataWarning",
    "maximize",
    "minimize",
]

_HOMES = {
    "AtLeast": "airbo.outcomes",
    "AtMost": "airbo.outcomes",
    "Between": "airbo.outcomes",
    "Campaign": "airbo.lab",
    "Categorical": "airbo.space.parameters",
    "Environment": "airbo.space.parameters",
    "ExperimentError": "airbo.run",
    "Float": "airbo.space.parameters",
    "Integer": "airbo.space.parameters",
    "Maximize": "airbo.outcomes",
    "Minimize": "airbo.outcomes",
    "Optimizer": "airbo.optimizer",
    "Recommendation": "airbo.optimizer.recommendation",
    "Result": "airbo.run",
    "Space": "airbo.space",
    "TooLittleDataWarning": "airbo.optimizer.recommendation",
    "maximize": "airbo.run",
    "minimize": "airbo.run",
}
_MODULES = {
    "acquisition",
    "analysis",
    "calibrate",
    "embeddings",
    "integrations",
    "lab",
    "measures",
    "models",
    "optimizer",
    "problems",
    "run",
    "space",
    "testing",
    "theory",
    "uncertainty",
}


def __getattr__(name: str) -> Any:
    """Import what is used when it is used: PyTorch takes seconds, ``airbo --help`` must not."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"airbo.{name}")
    raise AttributeError(f"module 'airbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
