"""Bayesian optimization when the input you ask for is not the input you get."""

from airbo.parameters import Categorical, Float, Integer
from airbo.space import Space

__version__ = "0.1.0"
__all__ = ["Categorical", "Float", "Integer", "Space"]
