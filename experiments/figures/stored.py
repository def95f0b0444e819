"""Stored runs of the comparison, as the pictures of the docs need them."""

from functools import cache

import numpy as np

from experiments.choosing.comparison import CHOOSING
from experiments.harness.experiment import Results
from experiments.harness.store import Store
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import EXPECTATION_RANDOM, GP

DEFAULT, PLAIN = EXPECTATION_RANDOM.label, GP.label


@cache
def runs(name: str) -> tuple[Optimization, Results]:
    """Return a case of the comparison, and its repeats of all methods."""
    [case] = [case for case in CHOOSING.cases if case.name == name]
    tasks = [task for task in CHOOSING.tasks(CHOOSING.repeats) if task.experiment == name]
    return case, Store().results(tasks)


def finals(name: str, label: str) -> np.ndarray:
    """Return the regret at the end of every repeat, in the order of the seeds."""
    case, results = runs(name)
    ended = {t.seed: case.regret_after(r, 1.0) for t, r in results if t.label == label}
    return np.array([ended[seed] for seed in sorted(ended)])


def median_repeat(name: str) -> int:
    """Return the repeat whose lead of the default over a plain GP is the median of all leads."""
    lead = finals(name, PLAIN) - finals(name, DEFAULT)
    return int(np.argsort(lead, kind="stable")[len(lead) // 2])
