"""The rows of the table: a plain Gaussian process and MMDGP under each estimator."""

from dataclasses import dataclass

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from torch import Tensor

from airbo.embeddings import Empirical, Estimator, Nystrom, Quadrature, ScaleMixtureKernel
from airbo.models import MMDGP
from experiments.subjects.internals import log_normal
from experiments.subjects.uncertainties import UncertainBox


@dataclass(frozen=True)
class Timed:
    """A model that is timed: MMDGP under an estimator, or a plain GP."""

    name: str
    estimator: Estimator | None = None
    slow: bool = False
    """Has 100 samples or landmarks per design: timed in full runs only, and only in t-batches."""

    ard: bool = False
    """Has a length scale per parameter; at the start, the longest is ten times the shortest."""

    def model(self, case: UncertainBox, X: Tensor, Y: Tensor) -> SingleTaskGP:
        if self.estimator is None:
            return SingleTaskGP(X, Y, input_transform=Normalize(case.d, bounds=case.bounds))
        kernel = per_parameter(case.d) if self.ard else None
        return MMDGP(
            X, Y, case.uncertainty, case.bounds, estimator=self.estimator, base_kernel=kernel
        )


def per_parameter(d: int) -> ScaleMixtureKernel:
    """Build the default's base kernel with one length scale per parameter."""
    start = 0.3 * d**0.5
    kernel = ScaleMixtureKernel(
        start,
        log_normal(start, 0.7),
        factor_prior=log_normal(1.0, 0.7),
        ard_num_dims=d,
    ).double()
    kernel.factors = torch.logspace(-0.5, 0.5, d, dtype=torch.float64)
    return kernel


YARDSTICK = Timed("SingleTaskGP")
DEFAULT = Timed("Quadrature (default)", Quadrature())
PER_PARAMETER = Timed("Quadrature, a length scale per parameter", Quadrature(), ard=True)

METHODS = (
    YARDSTICK,
    DEFAULT,
    Timed("Empirical(20)", Empirical(20)),
    Timed("Empirical(100)", Empirical(100), slow=True),
    Timed("Nystrom(100, 10)", Nystrom(100, 10)),
    Timed("Nystrom(160, 10)", Nystrom(160, 10)),
    Timed("Nystrom(1000, 100)", Nystrom(1000, 100), slow=True),
)
HUGE = Timed("Empirical(1000)", Empirical(1000), slow=True)
"""In the paper's table. It takes minutes per posterior, so no benchmark includes it."""
BY_NAME = {method.name: method for method in (*METHODS, HUGE)}
