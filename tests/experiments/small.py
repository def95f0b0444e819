"""Small versions of experiments that touch everything."""

from dataclasses import replace

from experiments.paper.inference_time import METHODS, PARTS

CONFIG = {
    "handover": {"n": 14},
    "reliability": {"n_steps": 8},
    "context": {"n_steps": 11},
    "known-noise": {"n_steps": 11},
    "modelling": {"n_grid": 51},
    "surrogates": {"n_grid": 51},
    "dilemma": {"n_shifts": 3, "n_draws": 5, "n_starts": 1, "n_good": 1, "n_grid": 21},
    "inference-time": {
        "n_designs": 8,
        "n_rounds": 2,
        "methods": [m for m in METHODS if m not in PARTS],
        "parts": {},
    },
    "paper": {"budget": 12},
    "beliefs": {"n_searches": 5},
    "regret-growth": {"n_steps": 12},
    "gain-growth": {"n": 32, "n_candidates": 64},
}
"""What is smaller in their configurations."""


def small_tasks(experiment, repeats=1):
    """Return the tasks with what is smaller; every number of it belongs to some of them."""
    tasks, smaller = experiment.tasks(min(repeats, experiment.repeats)), CONFIG[experiment.name]
    assert smaller.keys() <= {key for task in tasks for key in task.config}
    return [
        replace(task, config={key: smaller.get(key, v) for key, v in task.config.items()})
        for task in tasks
    ]
