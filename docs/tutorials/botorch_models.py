# %% [markdown]
# # ExpectationGP against InputPerturbation
#
# This tutorial compares airbo's `ExpectationGP` with BoTorch's `InputPerturbation` on the same experiments. `InputPerturbation` averages a model of f over a perturbation. That is right if the model was trained where the experiments *landed*. If it was trained at the settings that you asked
# for, the model is averaged already, and `InputPerturbation` smooths it twice. `ExpectationGP` knows where the data came from.

# %%
import matplotlib.pyplot as plt
import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation
from gpytorch.mlls import ExactMarginalLogLikelihood

from airbo import uncertainty as unc
from airbo.models import ExpectationGP
from airbo.problems import DoublePeak

problem = DoublePeak()
P = problem.uncertainty
grid = torch.linspace(0, 1, 201, dtype=torch.float64).unsqueeze(-1)
truth = problem.expected(grid)


def experiments(n, seed):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 1, generator=generator, dtype=torch.float64)  # asked for
    return X, problem.observe(X, generator).unsqueeze(-1)  # at x', which nobody saw


# %% [markdown]
# ## Two models of the expected value

# %%
deviations = P.perturb(torch.zeros(1, 1, dtype=torch.float64), unc.base_draws(32, P.n_base(1)))[0]


def expectation_gp(X, Y):
    model = ExpectationGP(X, Y, P, problem.bounds)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        posterior = model.posterior(grid)
        return posterior.mean.flatten(), posterior.variance.flatten().sqrt()


def input_perturbation(X, Y):
    model = SingleTaskGP(X, Y, input_transform=InputPerturbation(deviations))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    average = ExpectationPosteriorTransform(32)
    with torch.no_grad():
        posterior = model.posterior(grid.unsqueeze(-2), posterior_transform=average)
        return posterior.mean.flatten(), posterior.variance.flatten().sqrt()


# %% [markdown]
# ## Who is right?
#
# Five data sets of each size. Error: root mean square difference from the true expected value. Lost: how much worse the model's best setting is than the true best (6.41).

# %%
MODELS = {"ExpectationGP": expectation_gp, "InputPerturbation": input_perturbation}
for n in (40, 120):
    for name, fitted in MODELS.items():
        errors, lost = [], []
        for seed in range(5):
            mean, _ = fitted(*experiments(n, seed))
            errors.append((mean - truth).square().mean().sqrt())
            lost.append(truth.max() - truth[mean.argmax()])
        print(f"n = {n:3}  {name:18} error {sum(errors) / 5:.2f}, lost {sum(lost) / 5:.2f}")

# %% [markdown]
# More data help `ExpectationGP`. They do not help `InputPerturbation`, which converges to a function that is smoothed twice. The picture has the first data set of 120.

# %%
X, Y = experiments(120, seed=0)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
for ax, (name, fitted), color in zip(axes, MODELS.items(), ("#0072B2", "#8C564B"), strict=True):
    mean, std = fitted(X, Y)
    ax.plot(X, Y, "o", color="#D55E00", ms=2.5, alpha=0.6, label="experiments")
    ax.plot(grid, truth, "k--", lw=1.2, label="truth")
    ax.plot(grid, mean, color=color, lw=2, label="model")
    ax.fill_between(grid.flatten(), mean - 2 * std, mean + 2 * std, color=color, alpha=0.15, lw=0)
    ax.set(title=name, xlabel="setting")
axes[0].set_ylabel("expected value")
axes[0].legend(fontsize=8)

# %% [markdown]
# If the experiments *are* exact, `InputPerturbation` is right, and `ExpectationGP(X, Y, unc.Exact(), bounds)` with `model.posterior(X, uncertainty=P)` answers the same question:
# [simulate exactly, use imprecisely](simulate.md). Many repeats: [does it help?](../benchmark.md). More: [BoTorch in ten lines](../botorch.md).
