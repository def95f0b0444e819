"""What is compared, on which cases, and by which rule: written down before any run.

Two halves, never mixed: on the cases for choosing the default is chosen; on the cases for
confirming it is compared with others. Both halves hold every kind of case.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from airbo.acquisition import UCB
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
)

REPEATS = 12
"""Of the benchmark."""
REPEATS_OF_SLIPS = 4
REPEATS_OF_CHOOSING, REPEATS_OF_SCREENING = 10, 3
"""Of the choice of the default, and of the cheap look before it."""
MARGIN = 1.05
"""The simplest candidate within this factor of the best one wins."""
SCREENED = 1.5
"""A candidate worse than the best by more than this factor after screening is not run further."""
FLOOR = 1e-3
"""Regrets below this share of the achievable gain count as this share."""

CHOOSING = (
    "circuit", "spring", "piston", "cantilever",  # tolerances in percent
    "wave", "hills",  # errors that vary
    "hartmann-3-gamma", "styblinski",  # skewed
    "camel",  # two modes
    "bumps-wide", "hartmann-3-wide", "levy", "ackley",  # wide
    "hartmann-3-precise",  # negligible
    "branin-exact", "three-bumps-exact",  # exact now, imprecise later
)  # fmt: skip
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
SLIPS_CHOOSING = (
    "bumps", "hartmann-3", "branin", "ackley", "schwefel", "rosenbrock", "power", "perceived",
    "steering", "michalewicz",
)  # fmt: skip
SLIPS_CONFIRMING = (
    "hartmann-6", "shekel-10", "griewank", "rastrigin", "powell", "eggholder", "levy", "pointing",
    "practice", "moving",
)  # fmt: skip

Start = Callable[[Case, int], Loop]
NYSTROM: Any = partial(MMDGP, estimator=Nystrom(160, 10))

AIRBO = "airbo"
METHODS: dict[str, Start] = {
    AIRBO: AirboLoop,
    "airbo, knowing nothing": partial(AirboLoop, surrogate="nominal", knows=False),
    "BoTorch": BoTorchLoop,
    "BoTorch InputPerturbation": PerturbedLoop,
    "Optuna GPSampler": OptunaLoop,
    "MMDGP-nystrom(160/10), UCB": partial(
        AirboLoop, surrogate=NYSTROM, acquisition=UCB(beta=2.0), policy="observed"
    ),
    "random": RandomLoop,
}
"""What is compared: airbo and its recommendation as shipped, and what others use today."""

CANDIDATES: dict[str, Start] = {
    "default, mu + 2 sigma": partial(AirboLoop, acquisition=UCB(beta=2.0)),
    "default, random beta": partial(AirboLoop, acquisition="ucb-random"),
    "default, balanced": AirboLoop,
}
"""Candidates for the default, the simplest first."""

PUBLISHED: dict[str, dict[float, float]] = {
    "along the way, unseen": {0.05: 0.054, 0.15: 0.115, 0.4: 0.232},
    "deployed, unseen": {0.05: 0.164, 0.15: 0.343, 0.4: 0.658},
    "along the way, logged": {0.05: 0.028, 0.15: 0.071, 0.4: 0.196},
}
"""What slips cost the standard process of the study, as a share of the achievable gain."""
