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

if TYPE_CHECKING:
    from airbo.uncertainty.additive import Beta, ChiSquared, Exact, Ring, Uniform
    from airbo.uncertainty.base import InputUncertainty, base_draws
    from airbo.uncertainty.clipped import Clipped
    from airbo.uncertainty.empirical import Empirical
    from airbo.uncertainty.external import SciPy, Torch
    from airbo.uncertainty.gaussian import Normal
    from airbo.uncertainty.learning import learn
    from airbo.uncertainty.measured import conditional
    from airbo.uncertainty.mixture import GaussianMixture
    from airbo.uncertainty.product import Product
    from airbo.uncertainty.relative import LogNormal, Relative
    from airbo.uncertainty.rounded import Rounded
    from airbo.uncertainty.sampler import Sampler
    from airbo.uncertainty.scaled import Scaled, scale
    from airbo.uncertainty.spec import from_dict, from_json
    from airbo.uncertainty.varying import Piecewise, Varying

__all__ = [
    "Beta",
    "ChiSquared",
    "Clipped",
    "Empirical",
    "Exact",
    "GaussianMixture",
    "InputUncertainty",
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
    "scale",
]

_HOMES = {
    "Beta": "additive",
    "ChiSquared": "additive",
    "Exact": "additive",
    "Ring": "additive",
    "Uniform": "additive",
    "InputUncertainty": "base",
    "base_draws": "base",
    "Clipped": "clipped",
    "Empirical": "empirical",
    "SciPy": "external",
    "Torch": "external",
    "Normal": "gaussian",
    "learn": "learning",
    "conditional": "measured",
    "GaussianMixture": "mixture",
    "Product": "product",
    "LogNormal": "relative",
    "Relative": "relative",
    "Rounded": "rounded",
    "Sampler": "sampler",
    "Scaled": "scaled",
    "scale": "scaled",
    "from_dict": "spec",
    "from_json": "spec",
    "Piecewise": "varying",
    "Varying": "varying",
}


def __getattr__(name: str) -> Any:
    """Import a class when it is used: descriptions can be read without PyTorch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
