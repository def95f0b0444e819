"""Small spaces, cheap optimizers and the loop that the tests of the optimizer share."""

import math
import warnings

import airbo
from airbo import Optimizer

LINE = {"x": (0.0, 1.0)}
SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
MILL = {
    "speed": (50.0, 200.0),
    "depth": airbo.Float(0.1, 2.0, log=True),
    "passes": airbo.Integer(1, 5),
    "tool": ["A", "B", "C"],
}


def hill(design):
    """A smooth function of all numbers of a design, with one category better than the others."""
    numbers = [v for v in design.values() if not isinstance(v, str)]
    bonus = sum(v == "B" for v in design.values())
    return sum(math.sin(0.9 * i + 3 * v) for i, v in enumerate(numbers)) + bonus


def cheap(space=LINE, uncertainty=None, **settings):
    """An optimizer with a quick surrogate and few initial designs."""
    settings = {"surrogate": "nominal", "n_initial": 3} | settings
    return Optimizer(space, uncertainty, **settings)


def run(optimizer, n, f=hill):
    """Ask and tell n times; return the designs."""
    designs = []
    for _ in range(n):
        designs.append(optimizer.ask())
        optimizer.tell(designs[-1], f(designs[-1]))
    return designs


def recommend(optimizer, **policy):
    """Recommend without the warning that there is little data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", airbo.TooLittleDataWarning)
        return optimizer.recommend(**policy)


def distance(a, b):
    """Largest difference between the numbers of two designs; infinite if a category differs."""
    if any(a[name] != b[name] for name in a if isinstance(a[name], str)):
        return math.inf
    return max((abs(a[name] - b[name]) for name in a if not isinstance(a[name], str)), default=0.0)
