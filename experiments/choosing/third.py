"""The third round of choosing a default: other acquisitions.

All cases of the first two rounds have been seen, so they count as choosing. The cases for
confirming are new: they were written down before any of them was run. The rule is that of the
second round (``experiments/choosing/confirming.py``).
"""

from experiments.choosing.confirming import case

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
