"""Which part of the values each measure looks at."""

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from airbo.measures import CVaR, InSpec, Mean, MeanStd, Measure, Quantile, Target, Worst
from experiments.harness.draw import DATA, MODEL, save

Part = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
LOW, HIGH, TARGET = 4.5, 7.2, 6.5


def draw_measures(folder: Path) -> None:
    """Show the values of one design in use, and what each measure makes of them."""
    generator = torch.Generator().manual_seed(0)
    x = 0.8 * torch.randn(40000, generator=generator, dtype=torch.float64)
    values = (7.5 - 0.9 * (x - 0.5).square()).clamp_min(1.0)  # past the top of a hill
    figure, axes = plt.subplots(2, 7, figsize=(14, 4.6), layout="constrained", sharex=True)
    for row, (direction, sign) in enumerate((("maximize", 1), ("minimize", -1))):
        shown = values if sign > 0 else 9.0 - values
        for ax, measure in zip(axes[row], measures(sign), strict=True):
            _draw(ax, measure, shown, sign)
        axes[row, 0].set_ylabel(direction)
    for ax in axes[-1]:
        ax.set_xlabel("value")
    save(figure, folder / "measures.png")


def measures(sign: int) -> list[Measure]:
    """Return one measure of each kind; limits are mirrored with the values."""
    low, high = (LOW, HIGH) if sign > 0 else (9.0 - HIGH, 9.0 - LOW)
    target = TARGET if sign > 0 else 9.0 - TARGET
    risks = [MeanStd(1.0), Quantile(0.9), CVaR(0.9), Worst()]
    return [Mean(), *risks, InSpec(low, high), Target(target)]


def _draw(ax: Axes, measure: Measure, values: torch.Tensor, sign: int) -> None:
    inside = measure.inside(sign, 1.0).of(sign * values)
    number = measure.factor(sign, 1.0) * inside.item()
    edges = np.linspace(0.5, 8.5, 81)
    counts, _ = np.histogram(values.numpy(), edges)
    middles = (edges[:-1] + edges[1:]) / 2
    edge = sign * Quantile(0.9).of(sign * values).item()
    counted = _part(measure, number, edge, sign)(middles)
    ax.bar(middles, counts, 0.1, color=np.where(counted, MODEL, "0.85"))
    if isinstance(measure, InSpec):
        ax.set_title(f"InSpec\n{number:.0%}")
    elif isinstance(measure, Target):
        ax.axvline(measure.value, color=DATA, lw=1.5)
        ax.set_title(f"Target({measure.value:g})\n{number:.2f}")
    else:
        ax.axvline(number, color=DATA, lw=1.5)
        given = {n: v for n, v in measure.to_dict().items() if n != "kind"}
        inner = ", ".join(f"{v:g}" for v in given.values())
        ax.set_title(f"{type(measure).__name__}({inner})\n{number:.2f}")
    ax.set(yticks=[])


def _part(measure: Measure, number: float, edge_of_tail: float, sign: int) -> Part:
    """Return which values count."""
    if isinstance(measure, CVaR):
        return lambda v: sign * v <= sign * edge_of_tail
    if isinstance(measure, Quantile):
        return lambda v: sign * v >= sign * number
    if isinstance(measure, Worst):
        return lambda v: np.abs(v - number) < 0.1
    if isinstance(measure, InSpec):
        limits = measure
        return lambda v: np.all([s * v >= s * limit for s, limit in limits.sides], axis=0)
    return lambda v: np.ones(len(v), dtype=bool)
