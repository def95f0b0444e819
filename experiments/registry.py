"""Which experiments there are."""

from dataclasses import replace

from experiments.ablation import ABLATION
from experiments.dilemma import DILEMMA
from experiments.experiment import Experiment
from experiments.inference_time import INFERENCE_TIME
from experiments.modelling import MODELLING
from experiments.optimization import BUMPED_BOWL, DOUBLE_PEAK, RKHS_GAUSSIAN
from experiments.push import PUSH
from experiments.surrogates import SURROGATES

MODELS = (MODELLING, DILEMMA, INFERENCE_TIME, SURROGATES)
OPTIMIZATIONS = (RKHS_GAUSSIAN, DOUBLE_PEAK, BUMPED_BOWL, PUSH, ABLATION)

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (*MODELS, *OPTIMIZATIONS)}
"""Those of the paper, in its order."""

VARIANTS: dict[str, Experiment] = {
    f"{e.name}-ei": replace(e, name=f"{e.name}-ei", acquisition="ei") for e in OPTIMIZATIONS
}
"""With expected improvement, as in the program that the authors published."""


def find(name: str) -> Experiment:
    """Return the experiment of a name."""
    known = EXPERIMENTS | VARIANTS
    if name not in known:
        raise ValueError(f"There is no experiment {name!r}; there are {', '.join(known)}.")
    return known[name]
