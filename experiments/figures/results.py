"""One chart of all results: what three methods lose, against a plain Gaussian process."""

from pathlib import Path

from experiments.choosing.chart import draw_relative
from experiments.choosing.comparison import CHOOSING
from experiments.figures.stored import DEFAULT, PLAIN, finals
from experiments.subjects.methods import BOTORCH_PERTURBED, NYSTROM


def draw_results(folder: Path) -> None:
    """Draw the mean regrets of the default, of the paper's method and of BoTorch's own."""
    methods = (DEFAULT, NYSTROM.label, BOTORCH_PERTURBED.label, PLAIN)
    means = {m: [finals(case.name, m).mean() for case in CHOOSING.cases] for m in methods}
    titles = [case.title for case in CHOOSING.cases]
    draw_relative(titles, means, PLAIN, folder / "results.png")
