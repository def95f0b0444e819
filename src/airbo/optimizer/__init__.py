"""Ask, tell, recommend: the one object with state, and what it is made of."""

from airbo.optimizer.optimizer import Optimizer
from airbo.optimizer.recommendation import Recommendation, TooLittleDataWarning
from airbo.optimizer.surrogate import Direction
from airbo.space import Design

__all__ = ["Design", "Direction", "Optimizer", "Recommendation", "TooLittleDataWarning"]
