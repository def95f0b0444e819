# %% [markdown]
# # What a better machine would buy
#
# A supplier offers a drive that is twice as accurate. Is it worth the money? airbo has a model of the process and of the error, so it can answer without a new experiment: the same data, used by
# another machine.
#
# The 60 experiments are spread evenly, because the question is about the whole curve and not only about today's best setting.

# %%
import math
import random

import matplotlib.pyplot as plt
import numpy as np

import airbo
from airbo import uncertainty as unc

mill = random.Random(1)


def removal(speed):
    sharp = 60 * math.exp(-(((speed - 160) / 8) ** 2))
    return sharp + 40 * math.exp(-(((speed - 95) / 30) ** 2))


space, error = {"speed": (50.0, 200.0)}, unc.Normal(8.0)
optimizer = airbo.Optimizer(space, {"speed": error}, seed=1)
for speed in np.linspace(50, 200, 60):
    optimizer.tell({"speed": speed}, removal(mill.gauss(speed, 8.0)))
best = optimizer.recommend("anywhere")
print(f"today: set {best.design['speed']:.0f} m/min, get {best.mean:.1f} ± {best.std:.1f}")

# %% [markdown]
# ## The same experiments, another machine
#
# `deployment=` says what the answer will be used on. `unc.scale` makes all deviations smaller or larger.


# %%
def on(factor):
    """Return the best design for a machine with `factor` times the deviations."""
    twin = airbo.Optimizer(
        space, {"speed": error}, deployment={"speed": error.scaled(factor)}, seed=1
    )
    for row in optimizer.observations.itertuples():
        twin.tell({"speed": row.speed}, row.value)
    return twin.recommend()


draws = np.random.default_rng(0).normal(size=20_000)
rows = []
for factor in (1.5, 1.0, 0.75, 0.5, 0.25):
    best = on(factor)
    speed = best.design["speed"]
    true = np.mean([removal(speed + 8.0 * factor * z) for z in draws])
    rows.append((8.0 * factor, best.mean, best.std, true))
    print(
        f"error {8.0 * factor:4.1f} m/min: set {speed:.0f}, get {best.mean:.1f} ± {best.std:.1f} (true {true:.1f})"
    )

# %%
width, mean, std, true = np.array(rows).T
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.errorbar(
    width, mean, 2 * std, fmt="o-", color="#0072B2", capsize=3, label="airbo, ± 2 deviations"
)
ax.plot(width, true, "kx--", label="truth")
ax.axvline(8, color="0.7", lw=1)
ax.text(8.1, true.min(), "today", color="0.5")
ax.set(xlabel="error of the machine (m/min)", ylabel="average in use")
ax.legend()

# %% [markdown]
# The report has this question on board, for each parameter: [what more accurate settings would be worth](../report.md). Where the answer is uncertain, ± says so: far from the experiments the model
# knows little about f itself.
