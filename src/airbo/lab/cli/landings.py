"""Where designs land, as a line of blocks."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from rich.table import Table
from torch import Tensor

from airbo.lab.cli.views import text_table
from airbo.lab.file import Settings
from airbo.space.cube import Cube
from airbo.uncertainty import base_draws
from airbo.uncertainty.in_cube import by_columns
from airbo.words import number, with_unit

N_LANDINGS, N_BARS = 2048, 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_QUANTILES = (0.025, 0.5, 0.975)


@dataclass(frozen=True)
class Landing:
    """Where one parameter lands when a design is asked for."""

    name: str
    unit: str
    asked: float
    quantiles: list[float]
    """What 2.5%, 50% and 97.5% of the executed inputs stay below."""
    histogram: str


def histogram(samples: Float[Tensor, " s"]) -> str:
    """Draw samples in one line.

    >>> histogram(torch.linspace(0, 1, 24, dtype=torch.float64))
    '████████████████████████'
    """
    low, high = samples.min().item(), samples.max().item()
    if low == high:
        return "█".center(N_BARS)
    counts = torch.histc(samples, N_BARS, low, high)
    heights = (counts / counts.max() * (len(_BLOCKS) - 1)).round().int().tolist()
    return "".join(_BLOCKS[h] if c else " " for h, c in zip(heights, counts, strict=True))


def landings(settings: Settings, use: bool = False) -> list[Landing]:
    """Sample where designs land: in the middle of the space, and at its ends if that differs.

    Args:
        settings: The campaign.
        use: Whether the recommended design is meant, in use, and not the experiments.
    """
    space = settings.space
    uncertainty = by_columns(space, settings.deployment if use else settings.uncertainty)
    whole = space.whole
    columns = uncertainty.uncertain_columns(whole.d)
    low, high = torch.tensor(space.bounds, dtype=torch.float64)
    middle = Cube(space).axes.to_columns(torch.full_like(low, 0.5))
    integers = list(space.integer_columns)
    middle[integers] = middle[integers].round()
    X = middle[None] if uncertainty.is_additive else torch.stack([low, middle, high])
    typical = torch.tensor(space.typical, dtype=torch.float64)
    X = torch.cat([X, typical.expand(len(X), -1)], dim=-1)
    samples = uncertainty.perturb(X, base_draws(N_LANDINGS, uncertainty.n_base(whole.d)))
    levels = torch.tensor(_QUANTILES, dtype=torch.float64)
    found = []
    for c in columns:
        name, between = whole.names[c], "nearest" if c in integers else "linear"
        for i in range(len(X) if c < space.d else 1):  # no design changes the environment
            own = samples[i, :, c]
            quantiles = torch.quantile(own, levels, interpolation=between).tolist()
            asked = X[i, c].item()
            found.append(Landing(name, settings.unit(name), asked, quantiles, histogram(own)))
    return found


def sketch_table(title: str, found: list[Landing]) -> Table:
    """Put quantiles and histograms into a table."""
    header = ["parameter", "asked for, or typical", "lands below (2.5%)", "(50%)", "(97.5%)", ""]
    rows = [
        [
            landing.name,
            *(with_unit(number(v), landing.unit) for v in (landing.asked, *landing.quantiles)),
            landing.histogram,
        ]
        for landing in found
    ]
    return text_table(title, header, rows, left=1)


def landing_data(found: list[Landing]) -> list[dict[str, Any]]:
    """Describe landings for programs."""
    return [
        {
            "parameter": landing.name,
            "asked": landing.asked,
            "quantiles": dict(zip(map(str, _QUANTILES), landing.quantiles, strict=True)),
        }
        for landing in found
    ]
