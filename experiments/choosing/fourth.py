"""The fourth round of choosing a default: the comparison made again, without a flaw.

In all runs of the first three rounds, executed inputs of the ten random first designs were not
independent of these designs (``Optimization.protocol``). All methods saw the same flawed values, so
that comparisons were fair; but a model that knows P was misled most, and intervals looked worse
than they are. Here executed inputs are independent, and runs begin with Sobol designs, as the
library does.

Written down before any run. The candidate is that of the third round, recommended from anywhere;
the rule is that of the second (``experiments/choosing/confirming.py``), on the 14 short cases of
the second and third round, which count as confirming because nothing was tuned on their unflawed
runs. On the long cases of the first round it must not be more than 1.5 times as bad with an
interval of the paired difference that does not contain 0. The other pairs say what surrogate and
acquisition contribute.
"""

from dataclasses import replace
from typing import Any

from experiments.choosing.comparison import CHOOSE, CONFIRM
from experiments.choosing.confirming import Confirming
from experiments.choosing.second import CONFIRM_NEW
from experiments.choosing.third import BALANCED, CONFIRM_THIRD, OTHERS
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import EXPECTATION_RANDOM, Method

APART = (("draws", "apart"), ("initial", "sobol"))


def unflawed(*cases: Any) -> tuple[Any, ...]:
    """Return the same cases, with independent executed inputs and Sobol designs first."""
    return tuple(replace(case, protocol=APART) for case in cases)


SHORT: tuple[Optimization, ...] = unflawed(*CONFIRM_NEW, *CONFIRM_THIRD)
LONG: tuple[Optimization, ...] = unflawed(*CHOOSE, *CONFIRM)


def _of(*surrogates: str) -> tuple[Method, ...]:
    return tuple(m for m in OTHERS if m.label.split(",")[0] in surrogates)


FOURTH = Confirming(
    "fourth",
    "Every surrogate with every acquisition, without the flaw of the first rounds",
    SHORT,
    (*_of("ExpectationGP", "RelevanceGP"), *_of("ERBF", "uGP", "GP", "MMDGP-nystrom(160/10)")),
    candidate=BALANCED,
    repeats=10,
    from_anywhere=True,
)
FOURTH_LONG = Confirming(
    "fourth-long",
    "The candidate and the present default on the cases of the first round, without its flaw",
    LONG,
    (EXPECTATION_RANDOM, BALANCED),
    candidate=BALANCED,
    repeats=10,
    from_anywhere=True,
)
