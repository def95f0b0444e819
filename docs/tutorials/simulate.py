# %% [markdown]
# # Simulate exactly, use imprecisely
#
# This tutorial is for you if you have a simulator, which hits every setting, and a machine, which does not. Describe both: `uncertainty` for the experiments (`None`: they are exact), and `deployment` for the later use.
#
# ## 1. The problem
#
# A function with two peaks, and a machine that overshoots by up to 0.1, mostly by almost nothing or by almost all of it.

# %%
import matplotlib.pyplot as plt
import torch

import airbo
from airbo.problems import DoublePeak

problem = DoublePeak()
machine = problem.uncertainty  # a beta distribution between 0 and 0.1


def simulate(design):
    return problem(torch.tensor([[design["x"]]], dtype=torch.float64)).item()


# %% [markdown]
# ## 2. Thirty simulations for each
#
# One optimizer knows how the answer will be used, the other does not.

# %%
knows = airbo.Optimizer({"x": (0.0, 1.0)}, None, deployment={"x": machine}, seed=0)
ignores = airbo.Optimizer({"x": (0.0, 1.0)}, None, seed=0)
for optimizer in (knows, ignores):
    for _ in range(30):
        design = optimizer.ask()
        optimizer.tell(design, simulate(design))

for name, optimizer in {"knows the machine": knows, "ignores it": ignores}.items():
    best = optimizer.recommend()
    X = torch.tensor([[best.design["x"]]], dtype=torch.float64)
    print(
        f"{name:18} x = {best.design['x']:.3f}: {problem(X).item():.2f} simulated, "
        f"{problem.expected(X).item():.2f} on average on the machine"
    )
print(f"best possible      x = {problem.robust_optimum.design.item():.3f}: "
      f"{problem.robust_optimum.value:.2f} on average on the machine")  # fmt: skip

# %% [markdown]
# The optimizer that knows the machine does not simulate its answer again and again. It simulates where the answer will *land*.

# %%
grid = torch.linspace(0, 1, 401, dtype=torch.float64).unsqueeze(-1)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(grid, problem(grid), color="#A8A8A8", label="simulated")
ax.plot(grid, problem.expected(grid), "k--", label="on the machine, on average")
for name, optimizer, color, y in (
    ("knows the machine", knows, "#0072B2", -1.0),
    ("ignores it", ignores, "#555555", -2.0),
):
    tried = optimizer.observations["x"]
    ax.plot(tried, [y] * len(tried), "|", color=color, ms=12, label=f"tried: {name}")
    X = torch.tensor([[optimizer.recommend().design["x"]]], dtype=torch.float64)
    ax.plot(X, problem.expected(X), "*", color=color, ms=16, mec="k")
ax.set(xlabel="setting", ylabel="value")
ax.legend(loc="upper right")

# %% [markdown]
# One seed proves little: try others.
#
# More: [experiments now, use later](../optimizer.md#experiments-now-use-later).
