"""Draw the pictures of the README and the docs: ``python -m experiments.figures [NAME ...]``."""

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import torch

from experiments.figures.default_model import draw_default_model
from experiments.figures.measures import draw_measures
from experiments.figures.paper import draw_drone, draw_mixture
from experiments.figures.problems import draw_problems
from experiments.figures.readme import draw_readme
from experiments.figures.uncertainties import draw_kinds
from experiments.harness.draw import STYLE
from experiments.harness.places import IMAGES

PICTURES: dict[str, Callable[[Path], None]] = {
    "readme": draw_readme,
    "default-model": draw_default_model,
    "kinds": draw_kinds,
    "problems": draw_problems,
    "drone": draw_drone,
    "mixture": draw_mixture,
    "measures": draw_measures,
}


def main() -> None:
    """Draw everything, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PICTURES)}")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of the pictures")
    given = parser.parse_args()
    unknown = set(given.names) - set(PICTURES)
    if unknown:
        parser.error(f"no picture {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}.")
    torch.set_num_threads(1)
    matplotlib.use("agg")
    with plt.style.context(STYLE):
        for name in given.names or PICTURES:
            PICTURES[name](given.images)


if __name__ == "__main__":
    main()
