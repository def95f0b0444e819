"""Hills of different height and width, with an error that grows with the first input."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.uncertainty import InputUncertainty, Normal, Varying

HEIGHTS = (1.0, 0.8, 0.6)
TOPS = ((0.8, 0.3), (0.35, 0.75), (0.2, 0.2))
WIDTHS = (0.08, 0.15, 0.25)


def growing(x: Float[Tensor, "*batch n 2"]) -> Normal:
    """Return an error of both inputs that grows with the first one."""
    return Normal((0.02 + 0.15 * x[..., :1]).expand(x.shape))


@dataclass(frozen=True)
class Hills(Problem):
    r"""Three round hills: the higher, the narrower.

    .. math:: f(x) = \sum_i h_i \exp(-\|x - c_i\|^2 / 2 w_i^2)

    By default the highest hill stands where the error is largest.
    """

    name: ClassVar[str] = "hills"
    direction: ClassVar[Direction] = "maximize"
    box: ClassVar[Box] = ((0.0, 0.0), (1.0, 1.0))

    uncertainty: InputUncertainty = field(default_factory=lambda: Varying(growing))

    def __call__(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"]:
        return self._blurred(X, X.new_zeros(()))

    def exact(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"] | None:
        """Return the blurred hills, if the errors of both inputs are normal and independent."""
        self.check_columns(X)
        P = self.uncertainty.at(X) if isinstance(self.uncertainty, Varying) else self.uncertainty
        if not isinstance(P, Normal):
            return None
        covariance = P.covariance(X)
        if covariance[..., 0, 1].any():
            return None
        return self._blurred(X, covariance.diagonal(dim1=-2, dim2=-1).unsqueeze(-2))

    def _blurred(self, X: Tensor, variances: Tensor) -> Tensor:
        """Return the hills, smoothed by a Gaussian with these variances of the inputs."""
        self.check_columns(X)
        heights, tops, widths = (X.new_tensor(v) for v in (HEIGHTS, TOPS, WIDTHS))
        own = widths.square().unsqueeze(-1)  # (hills, 1)
        # E h exp(-(x' - c)² / 2w²) = h √(w² / (w² + v)) exp(-(x - c)² / 2(w² + v)), per input
        total = own + variances
        squared = (X.unsqueeze(-2) - tops).square() / total  # (..., hills, 2)
        lower = (own / total).sqrt().expand_as(squared).prod(-1)
        return (heights * lower * torch.exp(-0.5 * squared.sum(-1))).sum(-1)
