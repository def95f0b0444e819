"""Which experiments there are."""

from dataclasses import replace

from experiments.ablation import ABLATION
from experiments.experiment import Experiment
from experiments.optimization import BUMPED_BOWL, DOUBLE_PEAK, RKHS_GAUSSIAN
from experiments.push import PUSH

OPTIMIZATIONS = (RKHS_GAUSSIAN, DOUBLE_PEAK, BUMPED_BOWL, PUSH, ABLATION)

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in OPTIMIZATIONS}
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
