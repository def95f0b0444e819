# %% [markdown]
# # Your first robust optimum in ten minutes
#
# A mill removes material. You want to remove as much as possible per minute. There is one setting, the speed, and the machine misses it: ask for 120 m/min, and you get
# something between about 104 and 136. You never see what you got. Which speed is best *in use*?
#
# ## 1. The machine
#
# In real life this is your workshop. Here it is a function with a sharp peak at 160 m/min and a broad one at 105, and an error of 8 m/min (standard deviation).

# %%
import math
import random

import matplotlib.pyplot as plt
import numpy as np

import airbo
from airbo import uncertainty as unc


def removal(speed):
    sharp = 60 * math.exp(-(((speed - 160) / 6) ** 2))
    return sharp + 40 * math.exp(-(((speed - 105) / 32) ** 2))


machine = random.Random(0)


def experiment(design):
    return removal(machine.gauss(design["speed"], 8.0))


for _ in range(4):
    print(f"asked for 160 m/min: {experiment({'speed': 160.0}):.1f}")

# %% [markdown]
# The same setting gives very different results. The best of them would mislead you.
#
# ## 2. Say what you know
#
# Two things: the range of each setting, and how far the machine tends to be off.

# %%
space = airbo.Space({"speed": (50.0, 200.0)})
error = {"speed": unc.Normal(8.0)}
optimizer = airbo.Optimizer(space, error, seed=0)

# %% [markdown]
# ## 3. Ask, run, tell
#
# airbo proposes a setting, you run the experiment, and tell the result. Thirty times.

# %%
for _ in range(30):
    design = optimizer.ask()
    optimizer.tell(design, experiment(design))
print(optimizer.observations[["speed", "value"]].tail(5).round(1).to_string(index=False))

# %% [markdown]
# ## 4. The answer

# %%
best = optimizer.recommend()
print(f"Set {best.design['speed']:.0f} m/min: {best.mean:.1f} ± {best.std:.1f} on average.")
lucky = optimizer.observations.sort_values("value").iloc[-1]
print(f"The luckiest experiment gave {lucky['value']:.1f}, at {lucky['speed']:.0f} m/min.")

# %% [markdown]
# Here we know the truth, so we can look. The dashed line is what each speed gives on average.

# %%
speeds = np.linspace(50, 200, 301)
misses = np.random.default_rng(0).normal(0, 8.0, 4000)
truth = np.array([np.mean([removal(s + m) for m in misses]) for s in speeds])
model = optimizer.predict([{"speed": s} for s in speeds])
mean, std = model["mean"], model["std"]

figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
ax.plot(speeds, [removal(s) for s in speeds], color="#A8A8A8", label="if hit exactly")
ax.plot(speeds, truth, "k--", label="truth, on average")
ax.plot(speeds, mean, color="#0072B2", lw=2, label="airbo")
ax.fill_between(speeds, mean - 2 * std, mean + 2 * std, color="#0072B2", alpha=0.15, lw=0)
ax.plot(
    optimizer.observations["speed"], optimizer.observations["value"], "o", color="#D55E00", ms=4
)
ax.plot(best.design["speed"], best.mean, "*", color="#0072B2", ms=17, mec="k", label="its answer")
ax.set(xlabel="speed asked for (m/min)", ylabel="removed (cm³/min)")
ax.legend()
print(f"True average of the answer: {np.interp(best.design['speed'], speeds, truth):.1f}")
print(f"Best possible average:      {truth.max():.1f}, at {speeds[truth.argmax()]:.0f} m/min")
print(f"On the sharp peak:          {np.interp(160, speeds, truth):.1f}")

# %% [markdown]
# ## 5. Keep it
#
# The whole state is one text. Tomorrow you go on where you stopped.

# %%
text = optimizer.to_json()
tomorrow = airbo.Optimizer.from_json(text)
assert tomorrow.ask() == optimizer.ask()

# %% [markdown]
# **Next:** you do not know how far your machine is off? [From a log of deviations to an uncertainty](log.md). You would rather not write Python? [The experimenter's day](../campaign.md).
