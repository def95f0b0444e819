# %% [markdown]
# # From a log of deviations to an uncertainty
#
# This tutorial turns a log of your machine into an uncertainty, and shows what that is worth compared with a guess. Most machines keep a log of what was asked and what was measured.
#
# ## 1. The log
#
# Ours is made up, so that we know the truth: a valve that overshoots by 0.1 bar in seven of ten cases, and otherwise hits.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

from airbo import uncertainty as unc

rng = np.random.default_rng(0)
asked = rng.uniform(1.0, 3.0, 400)
sticks = rng.random(400) < 0.7
actual = asked + np.where(sticks, 0.1, 0.0) + rng.normal(0, 0.01, 400)
print("asked ", asked[:5].round(2))
print("actual", actual[:5].round(2))

# %% [markdown]
# ## 2. What airbo makes of it

# %%
learned = unc.learn(asked, actual)
print(learned.text)

# %% [markdown]
# It found the two modes. A normal distribution with the same mean and spread would put most of its mass where the valve never is:

# %%
deviations = actual - asked
X = torch.zeros(1, 1, dtype=torch.float64)
found = learned.uncertainty.perturb(X, unc.base_draws(4096, learned.uncertainty.n_base(1)))
bins = np.linspace(-0.08, 0.2, 70)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist(deviations, bins, density=True, color="0.8", label="log")
ax.hist(
    found.flatten(), bins, density=True, histtype="step", color="#0072B2", lw=2, label="learned"
)
curve = np.exp(-0.5 * ((bins - deviations.mean()) / deviations.std()) ** 2)
ax.plot(
    bins, curve / (deviations.std() * np.sqrt(2 * np.pi)), "k:", label="normal, same mean, spread"
)
ax.set(xlabel="actual - asked (bar)", ylabel="density")
ax.legend()

# %% [markdown]
# ## 3. What is it worth?
#
# Take a process with a narrow optimum at 2.0 bar, 0.03 bar wide. Where should you aim? We compare three beliefs by the average over the log.

# %%
settings = torch.linspace(1.7, 2.2, 501, dtype=torch.float64).unsqueeze(-1)


def process(pressure):
    return np.exp(-(((pressure - 2.0) / 0.03) ** 2))


def average(uncertainty):
    draws = uncertainty.perturb(settings, unc.base_draws(1024, uncertainty.n_base(1)))
    return process(draws[..., 0].numpy()).mean(axis=-1)


real = average(unc.Empirical(deviations.reshape(-1, 1)))
bias, spread = deviations.mean(), deviations.std()
beliefs = {
    "hits exactly": unc.Exact(),
    "normal, same mean and spread": unc.GaussianMixture([[bias]], [[[spread**2]]], [1.0]),
    "learned from the log": learned.uncertainty,
}
for name, uncertainty in beliefs.items():
    aim = average(uncertainty).argmax()
    print(f"{name:30} aim at {settings[aim].item():.2f} bar, get {real[aim]:.2f} on average")

# %% [markdown]
# ## 4. Use it
#
# In Python, `airbo.Optimizer(space, {"pressure": learned.uncertainty})`. In a campaign, `airbo calibrate LOG.csv` does the same and prints lines to paste into `campaign.toml`:
# [from a log to an uncertainty](../calibrate.md) has what the log may look like, and what airbo looks for.
