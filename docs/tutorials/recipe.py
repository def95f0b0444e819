# %% [markdown]
# # The same recipe all year, or a recipe for today
#
# This tutorial is about things that change the result and that you cannot set: humidity, raw material, load. It finds the best setting over a whole year, the best setting for today, and what the difference is worth.
#
# ## 1. A dryer
#
# The quality of what leaves a dryer depends on the speed of its belt and on the humidity of the air. The more humid the air, the slower the belt has to run.
# The speed is off by about 3 mm/s, and nobody sees by how much. The dryer is made up, so that we know the truth.

# %%
import matplotlib.pyplot as plt
import numpy as np

import airbo
from airbo import uncertainty as unc
from airbo.analysis import tolerance_budget


def quality(speed, humidity):
    return 10 - ((speed - 125 + 2.5 * (humidity - 50)) / 25) ** 2


space = airbo.Space(
    {
        "speed": airbo.Float(50, 200, unit="mm/s"),
        "humidity": airbo.Environment(20, 80, typical=50, law=unc.Normal(7), unit="%"),
    }
)
optimizer = airbo.Optimizer(space, {"speed": unc.Normal(3)}, n_initial=5, seed=0)

# %% [markdown]
# A design has a speed and no humidity. `law` says how the humidity varies around its typical value over the year.
#
# ## 2. Twenty days
#
# Every morning, somebody reads the humidity. `ask(given=...)` returns a speed for that day, and `tell` remembers the day.

# %%
rng = np.random.default_rng(1)
for _ in range(20):
    humidity = float(np.clip(rng.normal(50, 7), 20, 80))
    design = optimizer.ask(given={"humidity": humidity})
    real_speed = design["speed"] + rng.normal(0, 3)
    optimizer.tell(design, quality(real_speed, humidity) + rng.normal(0, 0.2))
print(optimizer.observations.tail(3).round(1).to_string())

# %% [markdown]
# If the humidity was measured afterwards, pass it to `tell(design, value, executed={"humidity": 57.0})`. If nobody measured it, airbo uses the law.
#
# ## 3. Two answers

# %%
all_year = optimizer.recommend(policy="anywhere")
print(f"all year: {all_year.design['speed']:.0f} mm/s, quality {all_year.mean:.1f} on average")
for humidity in (40.0, 60.0):
    today = optimizer.recommend(given={"humidity": humidity})
    print(f"at {humidity:.0f}%: {today.design['speed']:.0f} mm/s, quality {today.mean:.1f}")

# %% [markdown]
# The best setting for each humidity, and the one for all year:

# %%
air = np.linspace(32, 68, 13)
daily = [optimizer.recommend(given={"humidity": h}).design["speed"] for h in air]
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(air, 125 - 2.5 * (air - 50), "k:", label="truth")
ax.plot(air, daily, color="#0072B2", marker="o", label="recommended for this humidity")
ax.axhline(all_year.design["speed"], color="#D55E00", label="recommended for all year")
told = optimizer.observations
ax.scatter(told["executed_humidity"], told["speed"], color="0.7", s=15, label="experiments")
ax.set(xlabel="humidity (%)", ylabel="speed (mm/s)")
ax.legend()

# %% [markdown]
# ## 4. What is a recipe for today worth?
#
# The tolerance budget says where the scatter of the yearly recipe comes from, and the truth says what the daily recipe gains:

# %%
budget = tolerance_budget(optimizer, all_year.design)
for part in budget.contributions:
    print(f"{part.parameters[0]:8} causes {100 * part.share.value:.0f}% of the variance")
year = np.clip(rng.normal(50, 7, 2000), 32, 68)
belt = rng.normal(0, 3, 2000)
same = quality(all_year.design["speed"] + belt, year).mean()
adapted = quality(np.interp(year, air, daily) + belt, year).mean()
print(f"the same recipe all year: {same:.1f}, a recipe for each day: {adapted:.1f}")

# %% [markdown]
# The interaction of both causes the rest. Reading the humidity every morning is worth the difference.
#
# ## 5. What else there is
#
# - **Without a law**, measure the environment in every experiment, and give it for every answer. `unc.learn` finds a law in a log.
# - **`given` works elsewhere, too**: in `predict`, `evaluate`, `front`, `operating_window` and `tolerance_budget`. It can also fix an ordinary parameter: `given={"tool": "A"}`.
# - **Environments that vary together** have one law: `{("humidity", "heat"): unc.Joint([...], correlation=...)}`.
#
# See also [campaigns](../campaign-details.md#what-nobody-sets), [Optuna](../optuna.md#what-nobody-sets), and [measurements](../measures-evidence.md#designs-that-go-into-use).
