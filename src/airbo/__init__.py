"""Bayesian optimization when the input you ask for is not the input you get."""

from airbo.optimizer import Optimizer
from airbo.optimizer.recommendation import Recommendation, TooLittleDataWarning
from airbo.parameters import Categorical, Float, Integer
from airbo.run import ExperimentError, Result, maximize, minimize
from airbo.space import Space

__version__ = "0.1.0"
__all__ = [
    "Categorical",
    "ExperimentError",
    "Float",
    "Integer",
    "Optimizer",
    "Recommendation",
    "Result",
    "Space",
    "TooLittleDataWarning",
    "maximize",
    "minimize",
]
