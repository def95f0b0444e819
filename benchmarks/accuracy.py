"""How far estimated kernel matrices are from the truth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.embeddings import Estimator, RationalQuadraticSum, default_base_kernel
from airbo.kernels import MMDKernel
from benchmarks.cases import Case
from benchmarks.truth import true_kernel

SHORT = 0.05
"""A length scale at which the shape of P_x matters, in model coordinates."""


@dataclass(frozen=True)
class Reference:
    """The true kernel matrix at one setting, and how well it is known."""

    case: Case
    lengthscale: str
    kernel: Kernel
    designs: Tensor
    truth: Tensor
    doubt: float

    def error(self, estimator: Estimator) -> float:
        """Return the largest error of exp(-MMD²) between the designs."""
        embedding = estimator.embed([self.case.uncertainty], self.kernel, self.case.bounds)
        with torch.no_grad():
            features = embedding(self.designs)
            estimate = MMDKernel(embedding).to(features)(features).to_dense()
        return (estimate - self.truth).abs().max().item()


def references(
    cases: Sequence[Case], n_pairs: int, step: Callable[[], None]
) -> Iterator[Reference]:
    """Work out the truth twice, from independent draws; what differs is the doubt."""
    for case in cases:
        X = case.close_designs()
        kernels = {"default": default_base_kernel(case.d), "0.05": RationalQuadraticSum(SHORT)}
        for name, kernel in kernels.items():
            kernel = kernel.double()
            with torch.no_grad():
                first, second = (true_kernel(case, X, kernel, n_pairs, s) for s in (11, 12))
            doubt = (first - second).abs().max().item() / 2
            step()
            yield Reference(case, name, kernel, X, (first + second) / 2, doubt)
