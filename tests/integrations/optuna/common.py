"""Quick samplers, and the studies that the tests of the sampler share."""

import math

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from airbo.integrations.optuna import AIRBOSampler
from airbo.models import NominalGP

LINE = {"x": FloatDistribution(0.0, 1.0)}
SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
MILL = {
    "speed": FloatDistribution(50.0, 200.0, step=2.5),
    "depth": FloatDistribution(0.1, 2.0, log=True),
    "passes": IntDistribution(1, 64, log=True),
    "teeth": IntDistribution(2, 8, step=2),
    "tool": CategoricalDistribution([None, "A", True]),
}


def unfitted(train_X, train_Y, uncertainty, bounds):
    """A surrogate that stays at its prior: quick, where the fit does not matter."""
    return NominalGP(train_X, train_Y, uncertainty, bounds=bounds).requires_grad_(False)


def quick(uncertainty=None, **settings):
    """A sampler with a quick surrogate and few trials at the start."""
    settings = {"surrogate": unfitted, "n_startup_trials": 3, "seed": 0} | settings
    return AIRBOSampler(uncertainty, **settings)


def study_of(sampler, direction="maximize", **settings):
    return optuna.create_study(direction=direction, sampler=sampler, **settings)


def hill(params):
    """A smooth function of all numbers, in which one tool is better than the others."""
    numbers = [v for v in params.values() if type(v) in (int, float)]
    return sum(math.sin(0.9 * i + 3 * v) for i, v in enumerate(numbers)) + (
        params.get("tool") == "A"
    )


def run(study, n, space=SQUARE, f=hill):
    """Ask and tell n times; return the parameters of all trials."""
    for _ in range(n):
        trial = study.ask(space)
        study.tell(trial, f(trial.params))
    return [trial.params for trial in study.trials]


def done(params, value=None, space=SQUARE, **fields):
    """A finished trial."""
    space = {name: space[name] for name in params}
    return optuna.create_trial(params=params, distributions=space, value=value, **fields)


def warnings_in(caplog):
    """What airbo itself has warned of."""
    return [r.getMessage() for r in caplog.records if r.name.startswith("airbo")]
