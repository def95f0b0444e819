"""Expected values where some parameters matter more than others."""

import math
from dataclasses import replace

from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior

from airbo.embeddings import ScaleMixtureKernel
from airbo.embeddings.base_kernels import log_normal
from airbo.models.data import Given, Parts
from airbo.models.expectation import ExpectationGP

START = 0.15
"""Where the fit of the common length scale starts, for each dimension. A fit that starts with a
long one may end where peaks count as noise."""
MODE, SPREAD = 0.3 / math.e, 0.7
"""Mode of the common length scale in one dimension, and the spread of its logarithm."""
SPREAD_OF_FACTORS = 0.5
"""Standard deviation of the logarithm of a parameter's factor, in its prior."""


class RelevanceGP(ExpectationGP):
    r"""``ExpectationGP`` that learns how much every parameter matters.

    Parameter c has the length scale :math:`r_c l`: one common scale times a factor with a narrow
    prior around 1. A few observations say little about the factors, so the model then behaves as if
    there were one length scale. Many observations can tell parameters apart.

    There are factors if every P_x of the experiments and of the use deviates independently in every
    parameter. Otherwise an ask would take several times as long, and there is one length scale.
    With one parameter it is an ``ExpectationGP``.
    """

    @classmethod
    def parts(cls, given: Given) -> Parts:
        """Choose the base kernel by the uncertainties, unless there is one."""
        apart = all(uncertainty.independent_columns for uncertainty in given.uncertainties)
        if given.base_kernel is None and apart and given.d > 1:
            given = replace(given, base_kernel=_kernel(given.d, ard_num_dims=given.d))
        return super().parts(given)

    @staticmethod
    def default_base_kernel(d: int) -> Kernel:
        """Build the base kernel with one length scale."""
        return _kernel(d) if d > 1 else ExpectationGP.default_base_kernel(d)


def _kernel(d: int, ard_num_dims: int | None = None) -> ScaleMixtureKernel:
    return ScaleMixtureKernel(
        START * d,
        log_normal(MODE * d, SPREAD),
        factor_prior=LogNormalPrior(0.0, SPREAD_OF_FACTORS),
        ard_num_dims=ard_num_dims,
    )
