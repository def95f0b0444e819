"""All private parts of airbo that the experiments need, in this one place.

Rivals are built from the library's own parts, and peers get the same searches and first designs as
our optimizer. If the library changes inside, only this module has to follow.
"""

from airbo.embeddings.base_kernels import log_normal
from airbo.embeddings.estimators import SampledEmbedding, nystrom_weights
from airbo.embeddings.kernels import IntegralKernel, MMDKernel
from airbo.measures.capability import Capability
from airbo.models.surrogates import MODE, SPREAD
from airbo.optimizer.search import N_RAW, N_RESTARTS, without_numerical_warnings
from airbo.problems.truth import Function, best_point, estimate
from airbo.space.cube import Cube
from airbo.theory.gain import check_probability, training

__all__ = [
    "MODE",
    "N_RAW",
    "N_RESTARTS",
    "SPREAD",
    "Capability",
    "Cube",
    "Function",
    "IntegralKernel",
    "MMDKernel",
    "SampledEmbedding",
    "best_point",
    "check_probability",
    "estimate",
    "log_normal",
    "nystrom_weights",
    "training",
    "without_numerical_warnings",
]
