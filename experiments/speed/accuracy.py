"""How far estimated kernel matrices are from the truth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from rich.progress import Progress
from torch import Tensor

from airbo.embeddings import Estimator, RationalQuadraticSum, default_base_kernel
from airbo.models import MMDGP
from experiments.speed.methods import DEFAULT, METHODS
from experiments.speed.truth import true_mmd2
from experiments.subjects.data import fit, observe
from experiments.subjects.internals import MMDKernel
from experiments.subjects.uncertainties import CASES, UncertainBox

SHORT = 0.05
"""A length scale at which the shape of P_x matters, in model coordinates."""
N_FITTED = 30
"""Observations to which hyper-parameters are fitted."""
N_PAIRS = {True: 2**15, False: 2**19}
WHILE_FITTING = "default, while fitting"
DOUBT = "truth ±"


@dataclass(frozen=True)
class Reference:
    """The true kernel matrix at one setting, and how well it is known."""

    case: UncertainBox
    lengthscale: str
    kernel: Kernel
    alpha: float
    designs: Tensor
    truth: Tensor
    doubt: float

    @property
    def label(self) -> str:
        return f"{self.case.name}, l {self.lengthscale}"

    def error(self, estimator: Estimator, fitting: bool = False) -> float:
        """Return the largest error of exp(-α MMD²) between the designs.

        Args:
            estimator: How MMD² is estimated.
            fitting: Whether to compute the kernel as in a fit or as in predictions.
        """
        embedding = estimator.embed([self.case.uncertainty], self.kernel, self.case.bounds)
        with torch.no_grad():
            features = embedding.train(fitting)(self.designs)
            kernel = MMDKernel(embedding, alpha=self.alpha).to(features).train(fitting)
            estimate = kernel(features).to_dense()
        return (estimate - self.truth).abs().max().item()


def references(
    cases: Sequence[UncertainBox], n_pairs: int, step: Callable[[], None], fitted: bool = False
) -> Iterator[Reference]:
    """Compute the truth twice, from independent draws; half their difference is its error."""
    for case in cases:
        X = case.close_designs()
        settings = {"default": (default_base_kernel(case.d).double(), 1.0)}
        if fitted:
            settings["fitted"] = _fitted(case)
        settings["0.05"] = (RationalQuadraticSum(SHORT).double(), 1.0)
        kernels = [kernel for kernel, _ in settings.values()]
        with torch.no_grad():
            twice = [true_mmd2(case, X, kernels, n_pairs, seed) for seed in (11, 12)]
        step()
        for (name, (kernel, alpha)), mmd2, again in zip(settings.items(), *twice, strict=True):
            first, second = torch.exp(-alpha * mmd2), torch.exp(-alpha * again)
            doubt = (first - second).abs().max().item() / 2
            yield Reference(case, name, kernel, alpha, X, (first + second) / 2, doubt)


def measure(quick: bool, bar: Progress) -> dict[str, dict[str, float]]:
    """Return the largest kernel error per setting and method; and how well the truth is known."""
    methods = [m for m in METHODS if m.estimator is not None and not (quick and m.slow)]
    task = bar.add_task("kernel errors", total=len(CASES))
    errors: dict[str, dict[str, float]] = {}
    for reference in references(CASES, N_PAIRS[quick], lambda: bar.advance(task), fitted=True):
        column = errors[reference.label] = {}
        for method in methods:
            assert method.estimator is not None
            column[method.name] = reference.error(method.estimator)
        assert DEFAULT.estimator is not None
        column[WHILE_FITTING] = reference.error(DEFAULT.estimator, fitting=True)
        column[DOUBT] = reference.doubt
    return errors


def _fitted(case: UncertainBox) -> tuple[Kernel, float]:
    """Return the base kernel and α of a model that was fitted to observations."""
    X, Y = observe(case, N_FITTED, seed=3)
    model = fit(MMDGP(X, Y, case.uncertainty, case.bounds))
    kernel = model.covar_module.base_kernel
    return kernel.embedding.base_kernel, kernel.alpha.item()
