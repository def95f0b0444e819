"""The robot push: regrets, the pushes that were found, and where they take the ball."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from airbo.uncertainty import base_draws
from experiments.harness import draw, table
from experiments.harness.experiment import Results
from experiments.harness.palette import shown
from experiments.paper.optimization import Optimization
from experiments.subjects.push import GOALS, QUADRANTS, RobotPush

HAND = (0.3, 1.0)
"""Half the sides of the rectangle that pushes."""
N_PUSHES = 6
"""Number of executed inputs drawn for every design that was found."""


class Push(Optimization):
    """Robust optimization of the robot push, with the maps of found designs."""

    problem: RobotPush

    def summary(self, results: Results) -> str:
        """Tabulate regrets, and into which quadrant the ball is pushed."""
        header = ["ball ends in quadrant", *QUADRANTS, "spread of the ball"]
        rows = []
        for label in results.labels:
            found = self.found(results, label)
            balls = self._balls(found)
            middle = balls.mean(dim=1)
            names = [_quadrant(x, y) for x, y in middle.tolist()]
            spread = (balls - middle.unsqueeze(1)).norm(dim=-1).square().mean().sqrt()
            rows.append([label, *(str(names.count(q)) for q in QUADRANTS), f"{spread:.2f}"])
        optima = self.problem.robust_optima
        best = [
            [f"into {name}", *(f"{v:.2f}" for v in optimum.design.tolist()), f"{optimum.value:.3f}"]
            for name, optimum in optima.items()
        ]
        return "\n\n".join(
            [
                super().summary(results),
                "Where the outcomes of the repeats push the ball (middle of 256 pushes) and "
                "how far it scatters around (root mean square):",
                table.markdown(header, rows),
                "The best designs in expectation, by the quadrant they push to:",
                table.markdown(["", "r_x", "r_y", "r_t", "expected loss"], best),
            ]
        )

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the regrets, the designs found, and what they do."""
        n = len(results.labels)
        maps, pushes = folder / f"{self.name}_designs.png", folder / f"{self.name}_pushes.png"
        with draw.picture(maps, 10.5, 6.6) as figure:
            axes = figure.subplots(2, (n + 1) // 2, sharex=True, sharey=True, squeeze=False)
            for ax, label in zip(axes.flat, results.labels, strict=False):
                points = self._draw_designs(ax, self.found(results, label))
                ax.set_title(shown(label))
            figure.colorbar(points, ax=axes, label="push duration r_t", shrink=0.7)
        with draw.picture(pushes, 10.5, 7.2) as figure:
            axes = figure.subplots(2, (n + 1) // 2, sharex=True, sharey=True, squeeze=False)
            for ax, label in zip(axes.flat, results.labels, strict=False):
                self._draw_pushes(ax, self.found(results, label))
                ax.set_title(shown(label))
            axes[0, 0].legend(loc="lower right", fontsize=7)
        return [*super().plot(results, folder), maps, pushes]

    def found(self, results: Results, label: str) -> torch.Tensor:
        """Return the last outcome of every repeat of a method."""
        rows = [_outcome(result) for result in results.of(label)]
        return torch.tensor(rows, dtype=torch.float64)

    def _balls(self, designs: torch.Tensor, n: int = 256) -> torch.Tensor:
        return self.problem.ball(self._executed(designs, n))  # (repeats, n, 2)

    def _executed(self, designs: torch.Tensor, n: int) -> torch.Tensor:
        uncertainty = self.problem.uncertainty
        return uncertainty.perturb(designs, base_draws(n, uncertainty.n_base(3)))

    def _draw_designs(self, ax: Axes, found: torch.Tensor) -> Any:
        for optimum in self.problem.robust_optima.values():
            ax.plot(*optimum.design[:2].tolist(), "x", color="#999999", markersize=8)
        x, y, t = found.T.numpy()
        ax.axhline(0, color="#DDDDDD", linewidth=0.8, zorder=0)
        ax.axvline(0, color="#DDDDDD", linewidth=0.8, zorder=0)
        ax.set(xlim=(-5.6, 5.6), ylim=(-5.6, 5.6), aspect="equal", xlabel="$r_x$", ylabel="$r_y$")
        return ax.scatter(x, y, c=t, vmin=0, vmax=30, cmap="viridis", s=45, edgecolors="black")

    def _draw_pushes(self, ax: Axes, found: torch.Tensor) -> None:
        """Draw the hand of every outcome, and where the ball ends when it is executed."""
        for x, y, t in found.tolist():
            angle = np.arctan2(y, x)
            hand = Rectangle(
                (x - HAND[0], y - HAND[1]),
                2 * HAND[0],
                2 * HAND[1],
                angle=np.degrees(angle),
                rotation_point="center",
                fill=False,
                linewidth=0.7,
                alpha=0.6,
            )
            ax.add_patch(hand)
            length = t / 10
            ax.annotate(
                "",
                xy=(x - length * np.cos(angle), y - length * np.sin(angle)),
                xytext=(x, y),
                arrowprops={"arrowstyle": "->", "color": "#888888", "linewidth": 0.8},
            )
        balls = self._balls(found, N_PUSHES).flatten(0, 1)
        ax.scatter(
            balls[:, 0], balls[:, 1], s=14, color="#0072B2", alpha=0.6, linewidths=0, label="ball"
        )
        for squared, marker in ((False, "*"), (True, "P")):
            goals = [g for g in GOALS[self.problem.goals] if g.squared == squared]
            name = "goal, squared distance" if squared else "goal"
            ax.scatter(
                [g.x for g in goals],
                [g.y for g in goals],
                marker=marker,
                s=70,
                color="#D55E00",
                zorder=3,
                label=name,
            )
        ax.set(xlim=(-8, 8), ylim=(-8, 8), aspect="equal")


def _outcome(result: dict[str, Any]) -> list[float]:
    design: list[float] = result["designs"][result["outcomes"][-1]]
    return design


def _quadrant(x: float, y: float) -> str:
    signs = (1 if x >= 0 else -1, 1 if y >= 0 else -1)
    return next(name for name, s in QUADRANTS.items() if s == signs)


PUSH = Push(
    "push", "figures 5, 6 and 11", "Robot push under a mixture of two Gaussians", "push", 100
)
