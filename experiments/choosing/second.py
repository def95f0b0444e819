"""The second round of choosing a default: cases and rule, written before any of them was run.

Every case of the first round has been seen, so all of them count as choosing now. A candidate is
chosen by predictions and regrets on the cases for choosing. It is then run once on the cases for
confirming, beside every surrogate with every acquisition that matters.

The rule stands in ``experiments/choosing/confirming.py``.
"""

from experiments.choosing.confirming import Confirming, case
from experiments.choosing.predicting import Predicting
from experiments.subjects.methods import (
    BOTORCH,
    ERBF,
    EXPECTATION,
    EXPECTATION_RANDOM,
    GP,
    NYSTROM,
    RELEVANCE,
    RELEVANCE_RANDOM,
    Method,
)

CHOOSE_NEW = (
    case("second", "chirp-exact", "Chirp, exact now and normal later"),
    case("second", "hartmann-3-exact", "Hartmann in 3 dimensions, exact now and normal later"),
    case("second", "circuit", "Circuit (6), 5 V wanted"),
    case("second", "reactor", "Reactor (4), large yield"),
    case("second", "spring", "Spring (4), 10 N/mm wanted"),
    case("second", "borehole", "Borehole (8), 60 m³ a year wanted"),
)
"""New cases for choosing."""
CHOOSE_OLD = (
    case("second", "rkhs", "RKHS function under N(0, 0.01²)"),
    case("second", "double-peak", "Double peak under beta(0.4, 0.2, 0.1)"),
    case("second", "cliff", "Cliff under a skewed overshoot"),
    case("second", "hills", "Hills, hit less precisely on the right"),
    case("second", "branin", "Branin under a correlated error"),
    case("second", "push", "Robot push, two modes"),
    case("second", "hartmann-6", "Hartmann in 6 dimensions under Student's t"),
)
"""Cases of the first round that are run again, with 32 evaluations."""
CONFIRM_NEW = (
    case("second", "three-bumps-exact", "Three bumps, exact now and normal later"),
    case("second", "three-bumps", "Three bumps under N(0, 0.1²)"),
    case("second", "polynomial-exact", "Polynomial, exact now and normal later"),
    case("second", "piston", "Piston (7), 0.4 s wanted"),
    case("second", "controller", "Controller (6), 3 kΩ wanted"),
    case("second", "absorber", "Absorber (5), little vibration"),
    case("second", "arm", "Robot arm (8), a place wanted"),
)
"""The cases on which the choice is confirmed."""

UGP = Method("uGP", "ugp, the library's prior")
CONTENDERS = (EXPECTATION_RANDOM, RELEVANCE_RANDOM, RELEVANCE, ERBF)
METHODS = (
    *CONTENDERS,
    EXPECTATION,
    GP,
    UGP,
    NYSTROM,
    BOTORCH,
    Method("ERBF, randomized UCB", "erbf", acquisition="ucb-random"),
    Method("GP, randomized UCB", "nominal", acquisition="ucb-random"),
    Method("uGP, randomized UCB", "ugp, the library's prior", acquisition="ucb-random"),
)
"""Surrogates with acquisitions; a name without one means μ + 2σ."""

SECOND = Confirming(
    "second",
    "A new default against the present one, on the cases for confirming",
    CONFIRM_NEW,
    METHODS,
    candidate=RELEVANCE_RANDOM,
    repeats=10,
)
PREDICTED = (
    "rkhs",
    "double-peak",
    "cliff",
    "hills",
    "branin",
    "push",
    "hartmann-6",
    "circuit",
    "reactor",
    "spring",
    "borehole",
)
SECOND_PREDICTING = Predicting(
    "second-predicting",
    "Predicted expected values, with candidates of the second round",
    (
        EXPECTATION,
        Method("spread 1", "spread 1"),
        Method("twice as long, spread 0.7", "twice as long, spread 0.7"),
        Method("averaged over length scales", "hedged"),
        Method("a length scale per parameter", "relevance"),
        ERBF,
        GP,
    ),
    PREDICTED,
    repeats=3,
)
