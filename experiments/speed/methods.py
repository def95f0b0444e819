"""The rows of the table: a plain Gaussian process and MMDGP under each estimator."""

from dataclasses import dataclass

from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from torch import Tensor

from airbo.embeddings import Empirical, Estimator, Nystrom, Quadrature
from airbo.models import MMDGP
from experiments.subjects.uncertainties import UncertainBox


@dataclass(frozen=True)
class Timed:
    """A model that is timed: MMDGP under an estimator, or a plain GP."""

    name: str
    estimator: Estimator | None = None
    slow: bool = False
    """Has 100 samples or landmarks per design: timed in full runs only, and only in t-batches."""

    def model(self, case: UncertainBox, X: Tensor, Y: Tensor) -> SingleTaskGP:
        if self.estimator is None:
            return SingleTaskGP(X, Y, input_transform=Normalize(case.d, bounds=case.bounds))
        return MMDGP(X, Y, case.uncertainty, case.bounds, estimator=self.estimator)


YARDSTICK = Timed("SingleTaskGP")
DEFAULT = Timed("Quadrature (default)", Quadrature())

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
"""In the paper's table; takes minutes per posterior, and so is part of no benchmark."""
BY_NAME = {method.name: method for method in (*METHODS, HUGE)}
