"""Observations of a made-up machine under a case's uncertainty."""

import torch
from botorch import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from airbo.problems import RKHS
from experiments.subjects.internals import without_numerical_warnings
from experiments.subjects.uncertainties import UncertainBox


def observe(case: UncertainBox, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Request n designs and return the values where they land."""
    X = case.designs(n, seed)
    generator = torch.Generator().manual_seed(seed)
    n_base = max(1, case.uncertainty.n_base(case.d))
    base = torch.rand(n, n_base, generator=generator, dtype=torch.float64)
    executed = torch.cat([case.uncertainty.perturb(X[[i]], base[[i]])[0] for i in range(n)])
    unit = (executed - case.bounds[0]) / (case.bounds[1] - case.bounds[0])
    return X, value(unit).unsqueeze(-1)


def value(unit: Tensor) -> Tensor:
    """Evaluate the RKHS function in one dimension, and waves of several lengths in more."""
    d = unit.shape[-1]
    if d == 1:
        return RKHS()(unit)
    lengths = torch.arange(1, d + 1).to(unit).rsqrt()
    return torch.sin(6 * unit * lengths).sum(-1) + unit.square().sum(-1)


def fit(model: SingleTaskGP) -> SingleTaskGP:
    with without_numerical_warnings():
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model
