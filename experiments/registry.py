"""Which experiments there are."""

from dataclasses import replace

from experiments.ablation import ABLATION
from experiments.choosing import CHOOSING, SCREENING
from experiments.dilemma import DILEMMA
from experiments.experiment import Experiment
from experiments.inference_time import INFERENCE_TIME
from experiments.modelling import MODELLING
from experiments.optimization import BUMPED_BOWL, DOUBLE_PEAK, RKHS_GAUSSIAN
from experiments.predicting import FAMILY_PREDICTING, PREDICTING
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

BEYOND: dict[str, Experiment] = {
    e.name: e for e in (PREDICTING, FAMILY_PREDICTING, SCREENING, CHOOSING)
}
"""What the paper does not ask."""

KNOWN = EXPERIMENTS | VARIANTS | BEYOND


def find(name: str) -> Experiment:
    """Return the experiment of a name."""
    if name not in KNOWN:
        raise ValueError(f"There is no experiment {name!r}; there are {', '.join(KNOWN)}.")
    return KNOWN[name]
