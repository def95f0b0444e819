"""What is compared, on which cases, and by which rule: written down before any run.

There are two halves, and they are never mixed. The default is chosen on the cases for choosing; it
is compared with others on the cases for confirming. Both halves hold every kind of case.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models.model import Model
from torch import Tensor

from airbo.acquisition import UCB, KnowledgeGradient, RandomizedUCB, Situation
from airbo.embeddings import Nystrom
from airbo.models import MMDGP
from experiments.subjects.cases import Case
from experiments.subjects.loops import (
    AirboLoop,
    BoTorchLoop,
    Loop,
    OptunaLoop,
    PerturbedLoop,
    RandomLoop,
    StandardLoop,
)

Start = Callable[[Case, int], Loop]
"""Begins a run of a method on a case; the number is that of the repeat."""

# -- choosing the default


def noisy_improvement(model: Model, X_baseline: Tensor) -> qLogNoisyExpectedImprovement:
    return qLogNoisyExpectedImprovement(model, X_baseline, prune_baseline=True)


def balanced(model: Model, X_observed: Tensor, X_pending: Tensor | None) -> AcquisitionFunction:
    """Toss a coin for every design: the former default of airbo."""
    chosen = KnowledgeGradient() if torch.rand(()).item() < 0.5 else RandomizedUCB()
    return chosen(model, Situation(X_observed, X_pending))


CANDIDATES: dict[str, Start] = {
    "mu + 2 sigma": partial(AirboLoop, acquisition=UCB(beta=2.0)),
    "qLogNEI": partial(AirboLoop, acquisition=noisy_improvement),
    "knowledge gradient": partial(AirboLoop, acquisition=KnowledgeGradient()),
    "balanced": partial(AirboLoop, acquisition=balanced),
}
"""Acquisitions under the default surrogate, the simplest first. Another candidate is a line here.

All of them recommend as the library does.
"""

REPEATS_OF_CHOOSING = 10
"""A first look of three repeats was taken at all candidates. One whose score had exceeded the best
by a factor of 1.5 would have been dropped; none was."""
TOO_SLOW, FIRST_LOOK = ("qLogNEI",), 3
"""Has a first look on the cases without slips, to be shown, and cannot win. With slips one
ask takes 8 s of processor time (two parameters) to 57 s (five), where the others take 0.6 to 3.4 s.
This was written after these asks were timed and before any run with slips."""
FLOOR = 1e-3
"""Mean regrets below this share of the achievable gain count as this share."""
MARGIN = 1.05
"""The score of a candidate is the geometric mean, over the cases, of its mean regret at the end,
as a share of the achievable gain. The simplest candidate within this factor of the best wins."""

SLIPS_CHOOSING = (
    "bumps", "hartmann-3", "branin", "ackley", "schwefel", "rosenbrock", "power", "perceived",
    "steering", "michalewicz",
)  # fmt: skip
SLIPS_CONFIRMING = (
    "hartmann-6", "shekel-10", "griewank", "rastrigin", "powell", "eggholder", "levy", "pointing",
    "practice", "moving",
)  # fmt: skip
"""The landscapes of the study of slips, ten for each half."""

WITHOUT_SLIPS = (
    "circuit", "spring", "piston", "cantilever",  # tolerances in percent
    "wave", "hills",  # errors that vary
    "hartmann-3-gamma", "styblinski",  # skewed
    "camel",  # two modes
    "bumps-wide", "hartmann-3-wide", "levy", "ackley",  # wide
    "hartmann-3-precise",  # negligible
    "branin-exact", "three-bumps-exact",  # exact now, imprecise later
)  # fmt: skip
CHOOSING = (
    *WITHOUT_SLIPS,
    *(f"slip 15% {name}" for name in SLIPS_CHOOSING),  # imprecise now, exact later
)

# -- confirming it

NYSTROM: Any = partial(MMDGP, estimator=Nystrom(160, 10))

AIRBO = "airbo"
NOTHING = "airbo, knowing nothing"
METHODS: dict[str, Start] = {
    AIRBO: AirboLoop,
    NOTHING: partial(AirboLoop, surrogate="nominal", knows=False),
    "BoTorch": BoTorchLoop,
    "BoTorch InputPerturbation": PerturbedLoop,
    "Optuna GPSampler": OptunaLoop,
    "MMDGP-nystrom(160/10), UCB": partial(
        AirboLoop, surrogate=NYSTROM, acquisition=UCB(beta=2.0), policy="observed"
    ),
    "random": RandomLoop,
}
"""airbo and its recommendation as shipped, the same knowing nothing, and what others use today."""
REPEATS = 12
FEWEST = 6
"""Fewer repeats cannot show that a method is ahead: if it wins all n of them, chance alone does so,
for one of the two, in 2 · 2⁻ⁿ of all cases, which is 3% for n = 6."""

CONFIRMING = (
    "rkhs", "double-peak", "bumped-bowl", "push",  # the paper's
    "reactor", "borehole", "controller", "absorber",  # tolerances in percent
    "golem-2d-growing",  # errors that vary
    "rkhs-beta", "cliff",  # skewed
    "branin-two-modes", "hills-machines",  # two modes
    "hartmann-6", "shekel-wide",  # wide
    "branin-precise", "hartmann-6-precise",  # negligible
    "double-peak-exact", "chirp-exact", "polynomial-exact", "shekel-exact",  # exact now
    "golem-1d", "golem-2d", "golem-2d-wide", "qing-1d",  # published with their optima
)  # fmt: skip
KNOWING_PAYS = ("varies", "wide", "exact now", "used otherwise")
"""Kinds of cases on which knowing P should pay: the aim is half of the best other regret."""
CALIBRATED = (0.85, 0.95)
"""How often a 90% interval may hold the truth."""

# -- slips

STANDARD = "standard process"
SLIP_METHODS: dict[str, Start] = {AIRBO: AirboLoop, STANDARD: StandardLoop}
"""The study's standard process is a plain GP that uses the design with the best value."""
REPEATS_OF_SLIPS = 2
"""Intervals are over landscapes, which differ far more than the repeats on one of them. Ten
landscapes with two repeats say more than five with four, at the same cost."""
SLIPS = (0.0, 0.05, 0.15, 0.4)
"""Standard deviations of slips, relative to the ranges; 0: the same without slips."""
PUBLISHED: dict[tuple[str, str], dict[float, float]] = {
    ("along the way", "unseen"): {0.05: 0.054, 0.15: 0.115, 0.4: 0.232},
    ("deployed", "unseen"): {0.05: 0.164, 0.15: 0.343, 0.4: 0.658},
    ("along the way", "logged"): {0.05: 0.028, 0.15: 0.071, 0.4: 0.196},
}
"""What slips cost the study's standard process on all twenty landscapes, as a share of the
achievable gain: the mean over six acquisitions and five seeds."""
