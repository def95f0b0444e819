"""The list of experiments."""

from experiments.benchmark.runs import BENCHMARK, CHOOSE, SLIP
from experiments.harness.experiment import Experiment
from experiments.measures.base_kernel import BASE_KERNEL
from experiments.measures.calibration import IN_SPEC
from experiments.measures.environment import CONTEXT, KNOWN_NOISE, RELIABILITY
from experiments.measures.limits import LIMITS
from experiments.measures.regret import MEASURE_REGRET
from experiments.paper.beliefs import BELIEFS
from experiments.paper.dilemma import DILEMMA
from experiments.paper.inference_time import INFERENCE_TIME
from experiments.paper.modelling import MODELLING
from experiments.paper.optimizations import PAPER
from experiments.paper.surrogates import SURROGATES
from experiments.theory.gain_growth import GAIN_GROWTH
from experiments.theory.regret_growth import REGRET_GROWTH

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (MODELLING, DILEMMA, INFERENCE_TIME, PAPER, SURROGATES, BELIEFS)
}
"""The paper's evaluation."""

THEORY: dict[str, Experiment] = {e.name: e for e in (REGRET_GROWTH, GAIN_GROWTH)}
"""The theorems of the paper, compared with measurements."""

BEYOND: dict[str, Experiment] = {
    e.name: e
    for e in (
        CHOOSE,
        BENCHMARK,
        SLIP,
        MEASURE_REGRET,
        LIMITS,
        IN_SPEC,
        BASE_KERNEL,
        RELIABILITY,
        CONTEXT,
        KNOWN_NOISE,
    )
}
"""Questions that the paper does not ask."""

KNOWN = EXPERIMENTS | THEORY | BEYOND


def find(name: str) -> Experiment:
    """Return the experiment of this name."""
    if name not in KNOWN:
        raise ValueError(f"There is no experiment {name!r}; there are {', '.join(KNOWN)}.")
    return KNOWN[name]
