# %% [markdown]
# # Your first robust optimum in ten minutes
#
# This tutorial finds the best setting of a machine that overshoots. A nozzle coats a part. There is one setting, its position, and the spindle has play: every other run ends 30 mm further than you asked. You never see where it ended, only the result. Which position is best *in use*?
#
# ## 1. The machine
#
# In real life this is your workshop. Here it is a function with a tall peak at 160 mm and two lower ones, 30 mm apart.

# %%
import math
import random

import matplotlib.pyplot as plt
import numpy as np

import airbo
from airbo import uncertainty as unc

PEAKS = ((60, 160), (45, 70), (45, 100))
chance = random.Random(0)


def coating(x):
    return sum(height * math.exp(-(((x - center) / 8) ** 2)) for height, center in PEAKS)


def experiment(design):
    return coating(design["position"] + chance.choice([0.0, 30.0]) + chance.gauss(0.0, 2.0))


print("Asked for 160 mm:", ", ".join(f"{experiment({'position': 160.0}):.0f}" for _ in range(8)))

# %% [markdown]
# The same setting gives very different results. The best of them would mislead you.
#
# ## 2. Say what you know
#
# Tell airbo two things: the range of the setting, and where the machine ends. Here it is one of two places, with a standard deviation of 2 mm around each.

# %%
space = airbo.Space({"position": (50.0, 200.0)})
play = {"position": unc.GaussianMixture([[0.0], [30.0]], [[4.0]])}
optimizer = airbo.Optimizer(space, play, seed=1)

# %% [markdown]
# ## 3. Ask, run, tell
#
# airbo proposes a setting, you run the experiment and tell the result, twenty-four times. For comparison, an ordinary Gaussian process that knows nothing of the play does the same.

# %%
plain = airbo.Optimizer(space, surrogate="nominal", seed=1)
for each in (optimizer, plain):
    for _ in range(24):
        design = each.ask()
        each.tell(design, experiment(design))

# %% [markdown]
# ## 4. The answer

# %%
best = optimizer.recommend()
print(f"Set {best.design['position']:.0f} mm: {best.mean:.0f} ± {best.std:.0f} on average.")

# %% [markdown]
# Here we know the truth, so we can look. The dashed line is what each position gives on average.

# %%
positions = np.linspace(50, 200, 301)
misses = np.random.default_rng(0).normal(0, 2.0, 2000) + np.tile([0.0, 30.0], 1000)
truth = np.array([np.mean([coating(x + m) for m in misses]) for x in positions])
for name, each in {"airbo": optimizer, "plain GP": plain}.items():
    x = each.recommend().design["position"]
    print(f"{name}: {x:.0f} mm truly gives {np.interp(x, positions, truth):.0f} on average")
print(f"best possible: {positions[truth.argmax()]:.0f} mm, {truth.max():.0f} on average")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(positions, [coating(x) for x in positions], color="#A8A8A8", label="if hit exactly")
ax.plot(positions, truth, "k--", label="truth, on average")
for each, color, name in ((optimizer, "#0072B2", "airbo"), (plain, "#D55E00", "plain GP")):
    mean = each.predict([{"position": x} for x in positions])["mean"]
    x = each.recommend().design["position"]
    ax.plot(positions, mean, color=color, lw=2, label=f"{name}: average")
    ax.plot(each.observations["position"], each.observations["value"], "o", color=color, ms=3)
    ax.plot(x, np.interp(x, positions, truth), "*", color=color, ms=17, mec="k", zorder=3)
ax.set(xlabel="position asked for (mm)", ylabel="coating")
ax.legend(fontsize=8)

# %% [markdown]
# The stars are the two answers. At 70 mm a run ends at 70 or at 100 mm, always on one of the two lower peaks. airbo knows that two settings 30 mm apart share a landing place, so one experiment tells it about three
# places. The plain model has to find the same from scattered values. With the seeds 0 to 5, airbo finds this peak six times, and the plain model twice.
#
# ## 5. Keep it
#
# The whole state is one text. Tomorrow you continue where you stopped.

# %%
text = optimizer.to_json()
tomorrow = airbo.Optimizer.from_json(text)
assert tomorrow.ask() == optimizer.ask()

# %% [markdown]
# **Next:** you do not know how far your machine is off? [From a log of deviations to an uncertainty](log.md). You would rather not write Python? [The experimenter's day](../campaign.md).
