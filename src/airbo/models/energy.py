"""The paper's surrogate on the energy distance."""

import math
from dataclasses import replace
from typing import Any

from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.embeddings import Empirical
from airbo.models.data import Given, Parts
from airbo.models.mmd import MMDGP

N_ENERGY_SAMPLES = 24
"""Samples per design: the kernel is not a sum of Gaussians, so there is no closed form."""


class EnergyKernel(Kernel):
    r"""The base kernel under which MMD² is half the energy distance, in units of l.

    .. math:: k(x, y) = \tfrac12 (\|x - c\| + \|y - c\| - \|x - y\|) / l

    ``c`` is the middle of the unit cube, which the distance does not depend on.
    """

    def __init__(self, lengthscale: float) -> None:
        """Measure distances in units of ``lengthscale``, which stays as it is."""
        super().__init__()
        self.unit = lengthscale

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate at all pairs of points, or at matching ones."""
        r1, r2 = ((x - 0.5).norm(dim=-1) for x in (x1, x2))
        apart = self.covar_dist(x1, x2, diag=diag, **params)
        together = r1 + r2 if diag else r1.unsqueeze(-1) + r2.unsqueeze(-2)
        return (together - apart) / (2 * self.unit)


class EnergyGP(MMDGP):
    r"""Gaussian process with the kernel :math:`\exp(-\alpha\,D^2)` of the energy distance.

    .. math:: D^2(P, Q) = 2\,\mathbb E\|u - v\| - \mathbb E\|u - u'\| - \mathbb E\|v - v'\|

    The energy distance is an MMD, so this is ``MMDGP`` with another base kernel, by default from
    24 samples per design.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Compare samples by their distances."""
        kernel = given.base_kernel or EnergyKernel(0.3 * math.sqrt(given.d))
        estimator = given.estimator or Empirical(N_ENERGY_SAMPLES)
        return super().parts(replace(given, base_kernel=kernel, estimator=estimator))
