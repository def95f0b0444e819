"""The list of experiments."""

from experiments.benchmark.runs import BENCHMARK, CHOOSE, SLIP
from experiments.harness.experiment import Experiment
from experiments.measures.base_kernel import BASE_KERNEL
from experiments.measures.environment import CONTEXT, KNOWN_NOISE, RELIABILITY
from experiments.measures.handover import HANDOVER
from experiments.paper.beliefs import BELIEFS
from experiments.paper.dilemma import DILEMMA
from experiments.paper.inference_time import INFERENCE_TIME
from experiments.paper.modelling import MODELLING, SURROGATES
from experiments.paper.optimizations import PAPER
from experiments.theory.gain_growth import GAIN_GROWTH
from experiments.theory.regret_growth import REGRET_GROWTH

PAPERS: dict[str, Experiment] = {
    e.name: e
    for e in (
        MODELLING, DILEMMA, INFERENCE_TIME, PAPER, SURROGATES, BELIEFS, REGRET_GROWTH, GAIN_GROWTH,
    )
}  # fmt: skip
"""The paper's evaluation and its theorems, compared with measurements."""

KNOWN = PAPERS | {
    e.name: e
    for e in (
        CHOOSE, BENCHMARK, SLIP, BASE_KERNEL, RELIABILITY, CONTEXT, KNOWN_NOISE, HANDOVER,
    )
}  # fmt: skip
"""All of them, also those that the paper does not ask for."""
