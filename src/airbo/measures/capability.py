"""What quality people ask for where there are limits: share in spec, Cpk and ppm."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.measures.kinds import InSpec
from airbo.words import fixed, percent, ppm

CERTAINTY = 0.9
"""Probability that a number lies in its interval."""
IF_SKEWED = 0.98
"""The same on a side where draws are so skewed that their mean lies outside."""
COUNTED = 10
"""Values out of spec that are counted; where there are fewer, their share comes from the tail."""
TAIL = 2.0
"""Where the tail is measured, in standard deviations of a normal distribution: 2.3% lie beyond."""
MOST_CPK = 3.0
"""Largest Cpk: values that do not scatter have none, and more says nothing."""
CPK_IS = "Cpk is that of a normal distribution with as many values beyond the worse limit."
"""How Cpk is defined where values need not be normal."""


@dataclass(frozen=True)
class Capability:
    r"""How well a design keeps limits, over where it lands; intervals hold 90 of 100 draws of f.

    All numbers come from one: the share :math:`p` of values beyond each limit, by draw of f.

    .. math:: share = E_f[1 - p_{low} - p_{high}], \qquad ppm = 10^6 (1 - share), \qquad
              C_{pk} = \Phi^{-1}(1 - E_f \max(p_{low}, p_{high})) / 3

    For normal values this is the usual :math:`\min(high - \mu, \mu - low) / 3 \sigma`. What the
    model does not know makes p larger, and so it lowers share and Cpk alike. The worse limit is
    that of each draw: averaged over draws, both would look better than either is.

    Near 0 and 1, draws of a share are so skewed that their mean may lie outside the middle 90. On
    that side the interval then ends as the middle 98 do, or at the mean if that lies farther out.
    """

    share: float
    """Share of executed inputs with a value within the limits."""
    share_std: float
    """Its standard deviation (model uncertainty)."""
    share_interval: tuple[float, float]
    cpk: float
    """From the share beyond the worse limit, as if values were normal; at most 3."""
    cpk_interval: tuple[float, float]
    ppm: float
    """Executed inputs of a million that miss the limits."""
    ppm_interval: tuple[float, float]

    @classmethod
    def of(cls, limits: InSpec, values: Float[Tensor, "S s"]) -> "Capability":
        """Summarize draws of the values at executed inputs."""
        p = torch.stack([_beyond(sign * (values - limit)) for sign, limit in limits.sides])
        share = (1 - p.sum(0)).clamp(0, 1)  # (S,)
        low, high = around_mean(share)
        worse = p.amax(0)
        mean, cpk = share.mean().item(), _cpk(worse.mean()).item()
        return cls(
            mean,
            share.std().item(),
            (low, high),
            cpk,
            around(cpk, _cpk(worse)),
            1e6 * (1 - mean),
            (1e6 * (1 - high), 1e6 * (1 - low)),
        )

    @property
    def words(self) -> str:
        """Say it for people."""
        (low, high), (least, most) = self.share_interval, self.cpk_interval
        return (
            f"{percent(self.share)} in spec ({percent(low)} to {percent(high)}), "
            f"Cpk {cpk_words(self.cpk)} ({cpk_words(least)} to {cpk_words(most)}), "
            f"{ppm(self.ppm)} ppm out of spec"
        )


def cpk_words(cpk: float) -> str:
    """Write a Cpk.

    >>> cpk_words(1.333), cpk_words(3.0)
    ('1.33', '3 or more')
    """
    return fixed(cpk, 2) if cpk < MOST_CPK else f"{MOST_CPK:g} or more"


def _beyond(room: Float[Tensor, "S s"]) -> Float[Tensor, " S"]:
    """Return the share of values beyond a limit, from their distance to it; negative: beyond.

    Few values beyond are no measure of a small share. Below ``COUNTED`` of them, the tail on the
    side of the limit tells it: a quantile of the distances, q, lies ``TAIL`` standard deviations
    from their median m, as in the percentile method of ISO 22514-2.
    """
    n = room.shape[-1]
    counted = (room < 0).double().mean(-1)
    # z = TAIL m / (m - q),  p = Φ(-z)
    level = torch.special.ndtr(room.new_tensor(-TAIL))
    m, q = room.quantile(room.new_tensor([0.5, level]), dim=-1)
    tail = torch.special.ndtr(-TAIL * m / (m - q)).clamp_max(COUNTED / n)
    return torch.where((counted * n < COUNTED) & (m > q), tail, counted)


def _cpk(p: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """Return Φ⁻¹(1 - p) / 3."""
    return (-torch.special.ndtri(p) / 3).clamp(-MOST_CPK, MOST_CPK)


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


def middle_90(draws: Float[Tensor, " S"], share: float = CERTAINTY) -> tuple[float, float]:
    """Return what holds the middle 90 of 100 draws, or another share of them."""
    tail = (1 - share) / 2
    low, high = draws.quantile(draws.new_tensor([tail, 1 - tail])).tolist()
    return low, high


def around_mean(draws: Float[Tensor, " S"]) -> tuple[float, float]:
    """Return what holds the middle 90 of 100 draws, and their mean, however skewed they are."""
    return around(draws.mean().item(), draws)


def around(value: float, draws: Float[Tensor, " S"]) -> tuple[float, float]:
    """Return what holds the middle 90 of 100 draws, and a value, however skewed they are."""
    (low, high), (least, most) = middle_90(draws), middle_90(draws, IF_SKEWED)
    low = low if low <= value else min(value, least)
    return low, high if high >= value else max(value, most)
