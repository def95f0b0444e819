"""Whether the model of an outcome can be believed, and which parameters it says matter."""

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from botorch.cross_validation import loo_cv
from botorch.exceptions.errors import BotorchError
from numpy.typing import NDArray
from scipy.stats import binom
from torch.quasirandom import SobolEngine

from airbo import words
from airbo.lab.report import style
from airbo.lab.report.findings import Findings, OutcomeFindings
from airbo.optimizer.search import without_numerical_warnings

FEW = 6
"""With fewer designs there is no verdict."""
SURPRISING = 0.01
"""How often a model whose error bars are right is doubted by chance."""
N_BASE = 256
"""Designs from which the share of each parameter is estimated."""
LITTLE = 0.02
"""A parameter with a smaller share counts as unimportant."""


# -- values that the model has not seen


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
    def inside(self) -> NDArray[np.bool_]:
        """Which of them lie within two standard deviations."""
        return np.abs(self.observed - self.predicted) <= 2 * self.std

    @property
    def n_inside(self) -> int:
        """How many do."""
        return int(self.inside.sum())

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


Verdict = tuple[str, bool, go.Figure | None]
"""What is said of an outcome, whether there is a doubt, and a chart."""


def believed(findings: Findings) -> list[Verdict]:
    """Say of each outcome how well its model predicts what it has not seen."""
    found = [(outcome, left_out(outcome)) for outcome in findings.parts]
    return [(*trust_verdict(left), left and trust_figure(o, left)) for o, left in found]


def left_out(outcome: OutcomeFindings) -> LeftOut | None:
    """Predict every design from the others; None if the model cannot, or has too few."""
    findings, unit = outcome.findings, outcome.value_factor
    model: Any = copy.deepcopy(outcome.model.model)  # leaving out is a matter of fitting
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
    designs = findings.section.to_designs(model.train_inputs[0])
    return LeftOut(
        observed=unit * found.observed_Y.flatten().numpy(),
        predicted=unit * mean,
        std=abs(unit) * np.sqrt(np.clip(variance, 0, None)),
        designs=[words.design(findings.space, d) for d in designs],
    )


def trust_verdict(left: LeftOut | None) -> tuple[str, bool]:
    """Say whether the model can be believed, and whether there is a doubt."""
    if left is None:
        return "This surrogate cannot be asked about values that it has not seen.", True
    if left.n < FEW:
        return (
            f"With values of {words.plural(left.n, 'design')} it is too early to judge the model.",
            True,
        )
    if left.is_overconfident:
        return (
            f"Do not trust the ± of this page: only {left.n_inside} of {left.n} values lie where "
            "the model expected them without knowing them. It is too sure of itself.",
            True,
        )
    share = left.explained
    if share < 0.2:
        return (
            "The model cannot predict yet: it is hardly better than the mean of all values. "
            "It knows this, and its ± are wide.",
            True,
        )
    how = "well" if share >= 0.7 else "roughly"
    return (
        f"The model predicts {how} what it has not seen: it explains {math.floor(100 * share)}% of "
        f"the differences, and {left.n_inside} of {left.n} values lie where it expected them.",
        False,
    )


def trust_figure(outcome: OutcomeFindings, left: LeftOut) -> go.Figure:
    """Draw predicted against observed values; a good model lies on the diagonal."""
    every = np.concatenate([left.observed, left.predicted])
    edge = 0.05 * (np.ptp(every) or 1.0)
    ends = [float(every.min() - edge), float(every.max() + edge)]
    figure = go.Figure()
    diagonal = {"color": style.NOMINAL, "dash": "dash", "width": 1}
    style.scatter(figure, ends, ends, mode="lines", line=diagonal)
    rows = zip(left.designs, left.observed, left.predicted, left.std, strict=True)
    said = np.array(
        [
            f"{d}: observed {words.number(o)}, predicted {words.number(p)} ± {words.number(s, 2)}"
            for d, o, p, s in rows
        ]
    )
    for name, chosen, color in (
        ("within ± 2 standard deviations", left.inside, style.MODEL),
        ("outside", ~left.inside, style.FAILURE),
    ):
        if chosen.any():
            style.scatter(
                figure, left.observed[chosen], left.predicted[chosen], name, said[chosen],
                error_y={"array": 2 * left.std[chosen], "thickness": 1, "width": 0},
                marker={"color": color, "size": 8},
            )  # fmt: skip
    style.styled(figure, height=400)
    return figure.update_layout(
        xaxis={"title": style.plain(f"observed {outcome.label}"), "range": ends},
        yaxis={"title": style.plain(f"predicted {outcome.label}")},
    )


# -- what matters


def what_matters(findings: Findings) -> list[Verdict]:
    """Say of each outcome how much each parameter matters."""
    every = [importances(outcome) for outcome in findings.parts]
    return [(importance_verdict(shares), False, importance_figure(shares)) for shares in every]


def importances(outcome: OutcomeFindings) -> dict[str, float]:
    r"""Return the share of the differences in the expected value that each parameter takes part in.

    These are Sobol's total indices of the posterior mean m over the space, by Jansen's estimator:

    .. math:: T_i = \frac{E[(m(a) - m(a_{i \leftarrow b}))^2]}{2 \operatorname{Var} m(a)}

    where a and b are independent uniform designs, and :math:`a_{i \leftarrow b}` has parameter i of
    b. Where parameters act together the shares add up to more than one.
    """
    cube, names = outcome.findings.cube, outcome.findings.space.names
    d = len(names)
    draws = SobolEngine(2 * d, scramble=True, seed=0).draw(N_BASE, dtype=torch.float64)
    a, b = cube.round(draws[:, :d]), cube.round(draws[:, d:])
    designs = [a, b]
    for column in range(d):
        mixed = a.clone()
        mixed[:, column] = b[:, column]
        designs.append(mixed)
    m = outcome.expected(cube.axes.to_columns(torch.cat(designs))).mean
    first, second, *others = np.split(m, d + 2)
    variance = float(np.var(np.concatenate([first, second])))
    if variance <= 0:
        return dict.fromkeys(names, 0.0)
    # T_i is at most 1; its estimate need not be
    shares = (min(1.0, float(((first - other) ** 2).mean() / 2 / variance)) for other in others)
    return dict(zip(names, shares, strict=True))


def importance_verdict(shares: dict[str, float]) -> str:
    """Say which parameters matter."""
    ranked = sorted(shares, key=lambda name: -shares[name])
    little = [name for name in ranked if shares[name] < LITTLE]
    if len(little) == len(ranked):
        return "The model sees no parameter that matters."
    first = f"{ranked[0]} matters most."
    if not little:
        return first
    do = "makes" if len(little) == 1 else "make"
    return (
        f"{first} {words.listed(little)} {do} hardly any difference, as far as the model can tell."
    )


def importance_figure(shares: dict[str, float]) -> go.Figure:
    """Draw a bar for each parameter, the most important one on top."""
    ranked = sorted(shares, key=lambda name: shares[name])
    percent = [100 * shares[name] for name in ranked]
    figure = go.Figure()
    figure.add_bar(
        x=percent,
        y=[style.plain(name) for name in ranked],
        orientation="h",
        marker={"color": style.MODEL},
        text=[f"{p:.0f}%" for p in percent],
        textposition="auto",
        hoverinfo="skip",
    )
    style.styled(figure, height=120 + 32 * len(ranked))
    return figure.update_layout(
        xaxis={"title": "share of the differences", "ticksuffix": "%"},
        yaxis={"type": "category"},
        showlegend=False,
    )
