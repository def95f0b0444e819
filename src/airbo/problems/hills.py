"""Hills of different height and width, with an error that grows with the first input."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.observed import Direction
from airbo.problems.base import Box, Problem
from airbo.problems.truth import blurred_bumps
from airbo.uncertainty import InputUncertainty, Normal, Varying

HILLS = ((1.0, (0.8, 0.3), 0.08), (0.8, (0.35, 0.75), 0.15), (0.6, (0.2, 0.2), 0.25))
"""Height, place and width of each."""


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
        self.check_columns(X)
        return blurred_bumps(X, HILLS, torch.zeros_like(X))

    def exact(self, X: Float[Tensor, "*batch n 2"]) -> Float[Tensor, "*batch n"] | None:
        """Return the blurred hills, if the errors of both inputs are normal and independent."""
        C = self.normal_covariance(X)
        if C is None or C[..., 0, 1].any():
            return None
        return blurred_bumps(X, HILLS, C.diagonal(dim1=-2, dim2=-1))
