"""Whether the model can be believed: how well it predicts values that it has not seen."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from botorch.cross_validation import loo_cv
from botorch.exceptions.errors import BotorchError
from numpy.typing import NDArray
from scipy.stats import binom

from airbo.optimizer.search import without_numerical_warnings
from airbo.report import style
from airbo.report.findings import Findings
from airbo.words import design as design_words
from airbo.words import label, number

FEW = 6
"""With fewer designs there is no verdict."""
SURPRISING = 0.01
"""How often a model whose error bars are right is doubted by chance."""


@dataclass(frozen=True)
class LeftOut:
    """Values of designs, each predicted by the model without that design.

    The hyper-parameters are those of all experiments. Replicates of a design are left out together,
    and stand here as their mean.
    """

    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    std: NDArray[np.float64]
    """Standard deviation of a single value, as predicted."""
    designs: list[str]
    """The designs in words."""

    @property
    def n(self) -> int:
        """Number of designs."""
        return len(self.observed)

    @property
    def n_inside(self) -> int:
        """How many lie within two standard deviations."""
        return int((np.abs(self.observed - self.predicted) <= 2 * self.std).sum())

    @property
    def explained(self) -> float:
        """Share of the differences between designs that is predicted; below 0: worse than a mean.

        Each design is compared with the mean of the others, which has not seen it either.
        """
        n = self.n
        others = (self.observed.sum() - self.observed) / (n - 1)
        spread = float(((self.observed - others) ** 2).sum())
        missed = float(((self.observed - self.predicted) ** 2).sum())
        return 1 - missed / spread if spread > 0 else 0.0

    @property
    def is_overconfident(self) -> bool:
        """Whether fewer values lie inside than chance allows if the error bars are right."""
        return bool(binom.cdf(self.n_inside, self.n, 0.95) < SURPRISING)


def left_out(findings: Findings) -> LeftOut | None:
    """Predict every design from the others; None if the model cannot, or has too few."""
    beliefs = findings.beliefs
    model: Any = beliefs.model
    if len(model.train_targets) < 2:
        return None
    try:
        with without_numerical_warnings():
            found: Any = loo_cv(model)
    except (BotorchError, NotImplementedError):
        return None
    mean, variance = (
        t.detach().flatten().numpy() for t in (found.posterior.mean, found.posterior.variance)
    )
    Z = model.train_inputs[0]
    designs = findings.space.to_designs(findings.cube.to_columns(Z))
    return LeftOut(
        observed=beliefs.unit * found.observed_Y.flatten().numpy(),
        predicted=beliefs.unit * mean,
        std=abs(beliefs.unit) * np.sqrt(np.clip(variance, 0, None)),
        designs=[design_words(findings.space, d) for d in designs],
    )


def trust_verdict(left: LeftOut | None) -> tuple[str, bool]:
    """Say whether the model can be believed, and whether there is a doubt."""
    if left is None:
        return "This surrogate cannot be asked about values that it has not seen.", True
    if left.n < FEW:
        return f"With values of {left.n} designs it is too early to judge the model.", True
    if left.is_overconfident:
        return (
            f"Do not trust the ± of this page: only {left.n_inside} of {left.n} values lie where "
            "the model expected them without knowing them. It is too sure of itself.",
            True,
        )
    share = left.explained
    if share < 0.2:
        return (
            "The model cannot predict yet: it does hardly better than the mean of all values. "
            "It knows so, and its ± are wide.",
            True,
        )
    how = "well" if share >= 0.7 else "roughly"
    return (
        f"The model predicts {how} what it has not seen: it explains {math.floor(100 * share)}% of "
        f"the differences, and {left.n_inside} of {left.n} values lie where it expected them.",
        False,
    )


def trust_figure(findings: Findings, left: LeftOut) -> go.Figure:
    """Draw predicted against observed values; a good model lies on the diagonal."""
    inside = np.abs(left.observed - left.predicted) <= 2 * left.std
    every = np.concatenate([left.observed, left.predicted])
    edge = 0.05 * (np.ptp(every) or 1.0)
    ends = [float(every.min() - edge), float(every.max() + edge)]
    figure = go.Figure()
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line={"color": style.NOMINAL, "dash": "dash", "width": 1},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    for name, chosen, color in (
        ("within ± 2 standard deviations", inside, style.MODEL),
        ("outside", ~inside, style.FAILURE),
    ):
        if chosen.any():
            figure.add_scatter(
                x=left.observed[chosen],
                y=left.predicted[chosen],
                error_y={"array": 2 * left.std[chosen], "thickness": 1, "width": 0},
                mode="markers",
                name=name,
                marker={"color": color, "size": 8},
                hovertext=[
                    style.plain(
                        f"{d}: observed {number(o)}, predicted {number(p)} ± {number(s, 2)}"
                    )
                    for d, o, p, s, c in zip(
                        left.designs, left.observed, left.predicted, left.std, chosen, strict=True
                    )
                    if c
                ],
                hoverinfo="text",
            )
    style.styled(figure, height=400)
    shown = label(findings.name, findings.unit)
    return figure.update_layout(
        xaxis={"title": style.plain(f"observed {shown}"), "range": ends},
        yaxis={"title": style.plain(f"predicted {shown}")},
    )
