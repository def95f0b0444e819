"""From distributions to points in a Hilbert space: inner products, MMD² and their estimators."""

from airbo.embeddings.base_kernels import (
    RationalQuadraticSum,
    ScaleMixtureKernel,
    default_base_kernel,
)
from airbo.embeddings.estimators import Empirical, Estimator, Nystrom, Quadrature, mmd2
from airbo.embeddings.features import Embedding

__all__ = [
    "Embedding",
    "Empirical",
    "Estimator",
    "Nystrom",
    "Quadrature",
    "RationalQuadraticSum",
    "ScaleMixtureKernel",
    "default_base_kernel",
    "mmd2",
]
