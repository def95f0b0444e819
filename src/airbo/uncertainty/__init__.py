"""Where a design really lands: distributions of the executed input.

>>> import torch
>>> from airbo import uncertainty as unc
>>> where = unc.Product([unc.Normal(0.1), unc.Beta(0.4, 0.2, scale=0.1)])
>>> X = torch.tensor([[0.2, 0.5], [0.7, 0.5]], dtype=torch.float64)  # two designs
>>> base = unc.base_draws(n_samples=64, n_base=where.n_base(2), seed=0)
>>> where.perturb(X, base).shape
torch.Size([2, 64, 2])
>>> where.mean(X)[0].round(decimals=4)
tensor([0.2000, 0.5667], dtype=torch.float64)
>>> unc.from_json(where.to_json()) == where
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from airbo.uncertainty.kinds import KINDS, from_dict, from_json

if TYPE_CHECKING:
    from airbo.calibrate import learn
    from airbo.uncertainty.base import InputUncertainty, base_draws
    from airbo.uncertainty.columns import Beta, ChiSquared, Exact, LogNormal, Uniform
    from airbo.uncertainty.composed import Clipped, Joint, Product, Relative, Rounded, Scaled
    from airbo.uncertainty.conditional import conditional
    from airbo.uncertainty.external import SciPy, Torch
    from airbo.uncertainty.normal import Empirical, GaussianMixture, Normal, Ring
    from airbo.uncertainty.varying import Piecewise, Sampler, Varying

__all__ = [
    "Beta",
    "ChiSquared",
    "Clipped",
    "Empirical",
    "Exact",
    "GaussianMixture",
    "InputUncertainty",
    "Joint",
    "LogNormal",
    "Normal",
    "Piecewise",
    "Product",
    "Relative",
    "Ring",
    "Rounded",
    "Sampler",
    "Scaled",
    "SciPy",
    "Torch",
    "Uniform",
    "Varying",
    "base_draws",
    "conditional",
    "from_dict",
    "from_json",
    "learn",
]

_HOMES = {kind.name: kind.module for kind in KINDS.values()} | {
    "InputUncertainty": "base",
    "Sampler": "varying",
    "Torch": "external",
    "Varying": "varying",
    "base_draws": "base",
    "conditional": "conditional",
}


def __getattr__(name: str) -> Any:
    """Import a class when it is used: descriptions can be read without PyTorch."""
    if name == "learn":  # it stands on the uncertainties, and is wanted here
        return importlib.import_module("airbo.calibrate").learn
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
