"""How much each parameter matters, over the whole space."""

import numpy as np
import plotly.graph_objects as go
import torch
from torch.quasirandom import SobolEngine

from airbo.report import style
from airbo.report.findings import Findings
from airbo.words import listed

N_BASE = 256
LITTLE = 0.02
"""A parameter with a smaller share counts as unimportant."""


def importances(findings: Findings) -> dict[str, float]:
    r"""Return the share of the differences in the expected value that each parameter takes part in.

    These are Sobol's total indices of the posterior mean m over the space, by Jansen's estimator:

    .. math:: T_i = \frac{E[(m(a) - m(a_{i \leftarrow b}))^2]}{2 \operatorname{Var} m(a)}

    where a and b are independent uniform designs, and :math:`a_{i \leftarrow b}` has parameter i of
    b. Where parameters act together the shares add up to more than one.
    """
    cube, d = findings.cube, findings.space.d
    draws = SobolEngine(2 * d, scramble=True, seed=0).draw(N_BASE, dtype=torch.float64)
    a, b = cube.round(draws[:, :d]), cube.round(draws[:, d:])
    designs = [a, b]
    for column in range(d):
        mixed = a.clone()
        mixed[:, column] = b[:, column]
        designs.append(mixed)
    m = findings.beliefs.expected(cube.axes.to_columns(torch.cat(designs))).mean
    first, second, *others = np.split(m, d + 2)
    variance = float(np.var(np.concatenate([first, second])))
    if variance <= 0:
        return dict.fromkeys(findings.space.names, 0.0)
    shares = (float(((first - other) ** 2).mean() / 2 / variance) for other in others)
    return dict(zip(findings.space.names, shares, strict=True))


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
    return f"{first} {listed(little)} {do} hardly any difference, as far as the model can tell."


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
        xaxis={"title": "share of the differences in the expected value", "ticksuffix": "%"},
        yaxis={"type": "category"},
        showlegend=False,
    )
