"""The pushes of the robot that were found, and where they take the ball (figures 6 and 11)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from airbo.uncertainty import base_draws
from experiments.harness import draw, table
from experiments.harness.experiment import Results
from experiments.harness.palette import shown
from experiments.subjects.push import QUADRANTS


def found(results: Results, prefix: str) -> dict[str, Tensor]:
    """Return the last outcome of every repeat, (repeats, 3), by method."""
    labels = [label for label in results.labels if label.startswith(prefix)]
    return {
        label.removeprefix(prefix): torch.tensor(
            [result["outcome"] for result in results.of(label)], dtype=torch.float64
        )
        for label in labels
    }


def tables(problem: Any, designs: Mapping[str, Tensor]) -> str:
    """Tabulate into which quadrant the ball is pushed, and the best designs of each."""
    rows = []
    for label, each in designs.items():
        balls = _balls(problem, each, 256)
        middle = balls.mean(dim=1)
        names = [_quadrant(x, y) for x, y in middle.tolist()]
        spread = (balls - middle.unsqueeze(1)).norm(dim=-1).square().mean().sqrt()
        rows.append([label, *(str(names.count(q)) for q in QUADRANTS), f"{spread:.2f}"])
    best = [
        [f"into {name}", *(f"{v:.2f}" for v in optimum.design.tolist()), f"{optimum.value:.3f}"]
        for name, optimum in problem.robust_optima.items()
    ]
    return "\n\n".join(
        [
            "Where the outcomes of the repeats push the ball (middle of 256 pushes) and how far it "
            "scatters around (root mean square):",
            table.markdown(["ball ends in quadrant", *QUADRANTS, "spread of the ball"], rows),
            "The best designs in expectation, by the quadrant they push to:",
            table.markdown(["", "r_x", "r_y", "r_t", "expected loss"], best),
        ]
    )


def draw_designs(problem: Any, designs: Mapping[str, Tensor], path: Path) -> Path:
    """Draw the designs that were found; crosses are the best ones by quadrant."""
    columns = (len(designs) + 1) // 2
    with draw.picture(path, 10.5, 6.6) as figure:
        axes = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
        for ax, (label, each) in zip(axes.flat, designs.items(), strict=False):
            points = _draw_designs(problem, ax, each)
            ax.set_title(shown(label), fontsize=8)
        used, free = axes.flat[: len(designs)], axes.flat[len(designs) :]
        for ax in free:
            ax.remove()
        figure.colorbar(points, ax=list(used), label="push duration r_t", shrink=0.7)
    return path


def _balls(problem: Any, designs: Tensor, n: int) -> Tensor:
    """Return where the ball ends, (repeats, n, 2)."""
    base = base_draws(n, problem.uncertainty.n_base(3))
    balls: Tensor = problem.ball(problem.uncertainty.perturb(designs, base))
    return balls


def _draw_designs(problem: Any, ax: Axes, designs: Tensor) -> Any:
    for optimum in problem.robust_optima.values():
        ax.plot(*optimum.design[:2].tolist(), "x", color="#999999", markersize=8)
    x, y, t = designs.T.numpy()
    ax.axhline(0, color="#DDDDDD", linewidth=0.8, zorder=0)
    ax.axvline(0, color="#DDDDDD", linewidth=0.8, zorder=0)
    ax.set(xlim=(-5.6, 5.6), ylim=(-5.6, 5.6), aspect="equal", xlabel="$r_x$", ylabel="$r_y$")
    return ax.scatter(x, y, c=t, vmin=0, vmax=30, cmap="viridis", s=45, edgecolors="black")


def _quadrant(x: float, y: float) -> str:
    signs = (1 if x >= 0 else -1, 1 if y >= 0 else -1)
    return next(name for name, s in QUADRANTS.items() if s == signs)
