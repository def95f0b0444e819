"""Ask, tell, recommend: the one object with state, and what it is made of."""

from airbo.observed import Direction
from airbo.optimizer.optimizer import Optimizer
from airbo.optimizer.recommendation import Evaluation, Recommendation, TooLittleDataWarning
from airbo.space import Design

__all__ = [
    "Design",
    "Direction",
    "Evaluation",
    "Optimizer",
    "Recommendation",
    "TooLittleDataWarning",
]
