"""Where designs land, as a line of blocks."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.lab.file import Settings
from airbo.space.cube import Cube
from airbo.uncertainty import base_draws
from airbo.uncertainty.in_cube import by_columns

N_LANDINGS, N_BARS = 2048, 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_QUANTILES = (0.025, 0.5, 0.975)


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


def landings(settings: Settings, use: bool = False) -> list[tuple[dict[str, Any], str]]:
    """Sample where designs land: in the middle of the space, and at its ends if that differs.

    Args:
        settings: The campaign.
        use: Whether the recommended design is meant, in use, and not the experiments.

    Returns:
        The parameter, what was asked for, and what 2.5%, 50% and 97.5% of the executed inputs stay
        below, as plain values; and a histogram.
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
        between = "nearest" if c in integers else "linear"
        for i in range(len(X) if c < space.d else 1):  # no design changes the environment
            own = samples[i, :, c]
            quantiles = torch.quantile(own, levels, interpolation=between).tolist()
            below = dict(zip(map(str, _QUANTILES), quantiles, strict=True))
            row = {"parameter": whole.names[c], "asked": X[i, c].item(), "quantiles": below}
            found.append((row, histogram(own)))
    return found
