"""The third round of choosing a default: other acquisitions.

All cases of the first two rounds have been seen, so they count as choosing. The cases for
confirming are new: they were written down before any of them was run. The rule is that of the
second round (``experiments/choosing/confirming.py``).
"""

from dataclasses import replace

from experiments.choosing.confirming import Confirming, case
from experiments.choosing.second import CONFIRM_NEW
from experiments.subjects.methods import EXPECTATION_RANDOM, NYSTROM, Method

CONFIRM_THIRD = (
    case("third", "camel", "Camel (2), two modes"),
    case("third", "ackley", "Ackley (3) under Student's t"),
    case("third", "styblinski", "Styblinski (4) under a skewed error"),
    case("third", "shekel-exact", "Shekel (4), exact now and normal later"),
    case("third", "levy", "Levy (5) under N(0, 0.5²)"),
    case("third", "cantilever", "Cantilever (4), 2 units wanted"),
    case("third", "wing", "Wing (10), 240 lb wanted"),
)
"""The cases on which the choice is confirmed."""

BALANCED = Method("RelevanceGP, balanced", "relevance", acquisition="balanced")
OTHERS = tuple(
    Method(f"{label}, {words}" if words else label, model, estimator, acquisition)
    for label, model, estimator in (
        ("ExpectationGP", "expectation", None),
        ("RelevanceGP", "relevance", None),
        ("ERBF", "erbf", None),
        ("uGP", "ugp, the library's prior", None),
        ("GP", "nominal", None),
        ("MMDGP-nystrom(160/10)", "mmd", NYSTROM.estimator),
    )
    for words, acquisition in (
        ("", None),
        ("randomized UCB", "ucb-random"),
        ("balanced", "balanced"),
    )
)
"""Every surrogate with every acquisition; a name without one means μ + 2σ."""

THIRD = Confirming(
    "third",
    "A balanced acquisition against the present default, on new cases",
    CONFIRM_THIRD,
    (EXPECTATION_RANDOM, BALANCED, *(m for m in OTHERS if m not in (EXPECTATION_RANDOM, BALANCED))),
    candidate=BALANCED,
    repeats=10,
)

ANYWHERE = Confirming(
    "third-anywhere",
    "The same candidate, recommended from anywhere, against the present default",
    CONFIRM_NEW,
    (EXPECTATION_RANDOM, BALANCED),
    candidate=BALANCED,
    repeats=10,
    from_anywhere=True,
)
"""The candidate missed the rule on the cases above, but would have met it if it had recommended the
best design of the whole space instead of the best one tried. This is tested on the confirming cases
of the second round, on which the balanced acquisition had not been run."""

OTHER_WAYS = (
    Method("ExpectationGP, Thompson sampling", "expectation", acquisition="thompson"),
    Method("ExpectationGP, max-value entropy", "expectation", acquisition="entropy"),
    Method("ExpectationGP, noisy EI", "expectation", acquisition="noisy-ei"),
    replace(
        EXPECTATION_RANDOM,
        label="ExpectationGP, randomized UCB, Sobol start",
        protocol=(("initial", "sobol"),),
    ),
    replace(
        EXPECTATION_RANDOM,
        label="ExpectationGP, randomized UCB, in fours",
        protocol=(("batch", 4),),
    ),
)
"""The default with other acquisitions and initial designs, and in batches of four."""
WAYS = Confirming(
    "ways",
    "Other acquisitions, initial designs and batches, with the default's surrogate",
    CONFIRM_THIRD,
    (EXPECTATION_RANDOM, *OTHER_WAYS),
    candidate=OTHER_WAYS[0],
    repeats=5,
)
