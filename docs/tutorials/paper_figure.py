# %% [markdown]
# # One figure of the paper in a minute
#
# Every figure and table of the paper has a command ([the paper, run again](../paper.md)), and the results of all runs are stored in the repository. This tutorial draws the double peak from the stored
# runs, then runs one of them again and compares. It needs a clone, not only the package: it uses `experiments/`.

# %%
import matplotlib.pyplot as plt
import numpy as np

from experiments.harness.palette import colour, shown
from experiments.harness.store import Store
from experiments.registry import find

experiment = find("double-peak")
tasks = experiment.tasks(experiment.repeats)
results = Store().results(tasks)
print(f"{experiment.title}: {len(results.each)} stored runs of {len(results.labels)} methods")

# %% [markdown]
# ## The figure
#
# The mean robust regret of the design that each method would use, after each evaluation. `python -m experiments plot double-peak` draws the full picture and writes the table.

# %%
figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for label, rows in experiment.curves(results).items():
    steps = experiment.evaluations(results.of(label)[0])
    ax.plot(steps, rows.mean(axis=0), color=colour(label), label=shown(label))
ax.set(xlabel="evaluations", ylabel="mean robust regret", ylim=(0, None))
ax.legend(fontsize=8)

# %% [markdown]
# ## Run one of them again
#
# A task holds everything that its result depends on, except the code. The quick version has fewer steps; `python -m experiments run double-peak --jobs 2` runs them all, in hours.

# %%
[task] = [t for t in tasks if t.seed == 0 and t.label == "GP"]
again = experiment.run(task, lambda done, of: None)
[stored] = [result for t, result in results if t.seed == 0 and t.label == "GP"]
print(
    f"stored: regret {experiment.regret_after(stored, 1.0):.4f} after {len(stored['values'])} evaluations"
)
print(f"again:  regret {experiment.regret_after(again, 1.0):.4f}")
same = np.isclose(stored["designs"], again["designs"], atol=1e-3).all(axis=1)
print(f"{same.sum()} of {len(same)} designs are the same")

# %% [markdown]
# Another machine may round differently, and a search that is chaotic in its last digits then goes elsewhere; what must agree is the distribution over repeats. What agreed with the paper and what did not:
# [the paper, run again](../paper.md).
