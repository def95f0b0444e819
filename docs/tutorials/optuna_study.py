# %% [markdown]
# # An Optuna study: the lucky trial against the robust trial
#
# This tutorial finds the robust trial of an Optuna study, and continues the study with a sampler that knows the error. `study.best_trial` is the trial with the best value. If the machine misses its settings, that is the *luckiest* trial, not the best one.

# %%
import math
import random

import numpy as np
import optuna

from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler, recommend, robust_trial

optuna.logging.set_verbosity(optuna.logging.WARNING)
machine = random.Random(0)


def yield_at(temp):
    sharp = 80 * math.exp(-(((temp - 80) / 3) ** 2))
    return sharp + 40 * math.exp(-(((temp - 50) / 15) ** 2))


def objective(trial):
    temp = trial.suggest_float("temp", 20.0, 100.0)
    return yield_at(machine.gauss(temp, 6.0))  # the heater is off by 6 °C


# %% [markdown]
# ## An existing study
#
# Forty trials, spread at random.

# %%
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=40)

# %% [markdown]
# ## Two answers
#
# `robust_trial` returns the trial whose *parameters* have the best expected value. It works for any study if you declare the error.

# %%
sampler = AIRBOSampler(uncertainty={"temp": unc.Normal(6.0)}, seed=0)
misses = np.random.default_rng(1).normal(0, 6.0, 20_000)


def in_use(temp):
    return np.mean([yield_at(temp + m) for m in misses])


for name, trial in {
    "lucky": study.best_trial,
    "robust": robust_trial(study, sampler=sampler),
}.items():
    temp = trial.params["temp"]
    print(
        f"{name:6} trial {trial.number:2}: {temp:.1f} °C, value {trial.value:.1f}, "
        f"in use {in_use(temp):.1f} on average"
    )
print(f"best possible: {max(in_use(t) for t in range(40, 90)):.1f} on average")

# %% [markdown]
# ## Continue with a sampler that knows the error
#
# One assignment. Storage, workers, pruners and dashboard stay as they are.

# %%
study.sampler = sampler
study.optimize(objective, n_trials=10)
best = recommend(study)
print(f"{best.design['temp']:.1f} °C: {best.mean:.1f} ± {best.std:.1f} expected", end=", ")
print(f"{in_use(best.design['temp']):.1f} in truth")

# %% [markdown]
# More: [Optuna in five lines](../optuna.md) has measured inputs, many workers, constraints and Ray.
