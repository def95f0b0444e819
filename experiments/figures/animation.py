"""An animated run: airbo beside a plain Gaussian process, on an error that grows with the setting.

The run is a stored one: of all repeats, the one in which the lead of airbo is the median.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from airbo.problems import Wave
from experiments.figures.stored import DEFAULT, PLAIN, median_repeat, runs
from experiments.harness.draw import DATA, FUNCTION, TRUTH
from experiments.harness.palette import colour, shown
from experiments.paper import posteriors as post
from experiments.subjects.methods import start

CASE = "choosing-wave"
GRID = np.linspace(0, 1, 401)
EVERY = 2
"""Experiments from frame to frame."""
DPI, MILLISECONDS, LAST = 88, 450, 3500


@dataclass(frozen=True)
class Replay:
    """A stored run, fitted again to the data that it had at each step."""

    label: str
    seed: int

    @cached_property
    def stored(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The configuration and the result."""
        [found] = [
            (task.config, result) for task, result in runs(CASE)[1]
            if (task.label, task.seed) == (self.label, self.seed)
        ]  # fmt: skip
        return found

    def belief(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation after n experiments."""
        config, result = self.stored
        loop = start(config, runs(CASE)[0].case, self.seed)
        for design, value in list(zip(result["designs"], result["values"], strict=True))[:n]:
            loop.tell(design, value)
        return loop.predict(post.designs(GRID))

    def answer(self, n: int) -> tuple[float, float]:
        """Return the recommended setting after n experiments, and its regret."""
        case, (_, result) = runs(CASE)[0], self.stored
        step = n - case.evaluations(result)[0]
        [x] = result["designs"][result["outcomes"][step]]
        return x, case.regret_of(result["expected"][step])


def draw_median_run(folder: Path) -> None:
    """Write the animation; its last frame stays longer."""
    seed = median_repeat(CASE)
    replays = [Replay(label, seed) for label in (DEFAULT, PLAIN)]
    first, *_, last = runs(CASE)[0].evaluations(replays[0].stored[1])
    frames = [_frame(replays, n) for n in range(first, last + 1, EVERY)]
    shades = frames[-1].quantize(96, method=Image.Quantize.MAXCOVERAGE)
    small = [frame.quantize(palette=shades, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(
        folder / "median-run.gif", save_all=True, append_images=small[1:], loop=0, optimize=True,
        duration=[MILLISECONDS] * (len(small) - 1) + [LAST],
    )  # fmt: skip


def _frame(replays: list[Replay], n: int) -> Image.Image:
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.9), sharey=True, layout="constrained")
    for ax, replay in zip(axes, replays, strict=True):
        _panel(ax, replay, n)
    axes[0].set_ylabel("result")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    n_repeats = len({task.seed for task, _ in runs(CASE)[1]})
    figure.suptitle(
        f"The error grows with the setting. The median run of {n_repeats}, experiment {n}",
        fontsize=11,
    )
    figure.set_dpi(DPI)
    canvas: Any = figure.canvas
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    plt.close(figure)
    return Image.fromarray(pixels).convert("RGB")


def _panel(ax: Axes, replay: Replay, n: int) -> None:
    problem, X = Wave(), post.designs(GRID)
    mean, std = replay.belief(n)
    x, regret = replay.answer(n)
    result, shade = replay.stored[1], colour(replay.label)
    ax.plot(GRID, problem(X), color=FUNCTION, lw=1, label="if hit exactly")
    ax.plot(GRID, problem.expected(X), color=TRUTH, lw=1.3, ls="--", label="truth, on average")
    ax.fill_between(GRID, mean - 2 * std, mean + 2 * std, color=shade, alpha=0.15, lw=0)
    ax.plot(GRID, mean, color=shade, lw=2, label="what the model believes")
    seen = np.array(result["designs"][:n])[:, 0], result["values"][:n]
    ax.plot(*seen, "o", color=DATA, ms=3.5, mew=0, alpha=0.8, label="experiments")
    at = problem.expected(post.designs(np.array([x]))).item()
    ax.plot(x, at, "*", color=shade, ms=17, mec="black", zorder=5, label="its answer")
    ax.set(xlim=(-0.02, 1.02), ylim=(-1.6, 2.0), xlabel="setting")
    name = shown(replay.label)
    ax.set_title(f"{name}: true regret {regret:.2f}", color=shade, weight="bold")
