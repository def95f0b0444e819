"""What quality people ask for where there are limits: share in spec, Cpk and ppm."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.measures.kinds import InSpec

CERTAINTY = 0.9
"""Probability that a number lies in its interval."""

MOST_CPK = 100.0
"""Largest Cpk: values that do not scatter have none, and more says nothing."""


@dataclass(frozen=True)
class Capability:
    r"""How well a design keeps limits, over where it lands; intervals hold 90 of 100 draws of f.

    Near 0 and 1, draws of a share are so skewed that their mean may lie outside the middle 90. The
    interval then reaches as far as the mean.

    .. math:: C_{pk} = \min(high - \mu, \mu - low) / 3 \sigma, \qquad ppm = 10^6 (1 - share)

    with mean and standard deviation of the values over the executed inputs.
    """

    share: float
    """Share of executed inputs with a value within the limits."""
    share_std: float
    """Its standard deviation (model uncertainty)."""
    share_interval: tuple[float, float]
    cpk: float
    """Distance from the mean to the nearer limit, in three standard deviations; at most 100."""
    cpk_interval: tuple[float, float]
    ppm: float
    """Executed inputs of a million that miss the limits."""
    ppm_interval: tuple[float, float]

    @classmethod
    def of(cls, limits: InSpec, values: Float[Tensor, "S s"]) -> "Capability":
        """Summarize draws of the values at executed inputs."""
        # of each draw of f: its share in spec, and μ and σ over the executed inputs
        share = limits.of(values)  # (S,)
        mean, std = values.mean(-1), values.std(-1, correction=0)
        # (high - μ) / 3σ and (μ - low) / 3σ, for the limits that there are
        gaps = [sign * (mean - limit) for sign, limit in limits.sides]
        cpk = torch.stack(gaps).amin(0) / (3 * std.clamp_min(1e-300))
        cpk = cpk.clamp(-MOST_CPK, MOST_CPK)
        # ppm = 10⁶ (1 - share), so the ends of its interval change places
        low, high = around_mean(share)
        missed = (1e6 * (1 - high), 1e6 * (1 - low))
        mean_share = share.mean().item()
        return cls(
            mean_share,
            share.std().item(),
            (low, high),
            cpk.median().item(),
            middle_90(cpk),
            1e6 * (1 - mean_share),
            missed,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @property
    def words(self) -> str:
        """Say it for people."""
        low, high = self.share_interval
        return (
            f"{_percent(self.share)} in spec ({_percent(low)} to {_percent(high)}), "
            f"Cpk {self.cpk:.2f} ({self.cpk_interval[0]:.2f} to {self.cpk_interval[1]:.2f}), "
            f"{self.ppm:,.0f} ppm out of spec"
        )


def _percent(share: float) -> str:
    """Write a share with three digits, and more where it would pass for 100% without being it.

    >>> _percent(0.9643), _percent(0.9996), _percent(1.0)
    ('96.4%', '99.96%', '100%')
    """
    few, more, most = (f"{100 * share:.{n}g}%" for n in (3, 4, 5))
    return next((text for text in (few, more) if share == 1 or text != "100%"), most)


@dataclass(frozen=True)
class Likely:
    """A number that the model expects, and an interval around it with 90 of 100 draws or more."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: Float[Tensor, " S"], factor: float = 1.0) -> "Likely":
        """Summarize draws, each times a positive factor."""
        low, high = around_mean(draws)
        return cls(factor * draws.mean().item(), factor * low, factor * high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON."""
        return {"value": self.value, "interval": [self.low, self.high]}


def middle_90(draws: Float[Tensor, " S"]) -> tuple[float, float]:
    """Return what holds the middle 90 of 100 draws."""
    tail = (1 - CERTAINTY) / 2
    low, high = draws.quantile(draws.new_tensor([tail, 1 - tail])).tolist()
    return low, high


def around_mean(draws: Float[Tensor, " S"]) -> tuple[float, float]:
    """Return what holds the middle 90 of 100 draws, and their mean, however skewed they are."""
    (low, high), mean = middle_90(draws), draws.mean().item()
    return min(low, mean), max(high, mean)
