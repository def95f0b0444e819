"""From distributions to points in a Hilbert space: inner products, MMD² and their estimators."""

from airbo.embeddings.base_kernels import (
    RationalQuadraticSum,
    ScaleMixtureKernel,
    default_base_kernel,
)
from airbo.embeddings.estimators import Empirical, Estimator, Nystrom, Quadrature
from airbo.embeddings.features import Embedding
from airbo.embeddings.mmd2 import mmd2

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
