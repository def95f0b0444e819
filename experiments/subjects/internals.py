"""All private parts of airbo that the experiments need, in this one place.

Rivals are built from the library's own parts, and peers get the same searches and first designs as
our optimizer. If the library changes inside, only this module has to follow.
"""

from airbo.embeddings.base_kernels import log_normal
from airbo.embeddings.embedding import PORTION
from airbo.embeddings.features import Features
from airbo.embeddings.sampled import STEPS, SampledEmbedding, nystrom_weights
from airbo.kernels.constraints import positive
from airbo.measures.kinds import Measure
from airbo.measures.spread import with_local_spread
from airbo.models.data import Given, Parts
from airbo.models.draws import FunctionDraws
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.models.priors import lengthscale_prior, observation_noise, scaled
from airbo.models.relevance import MODE, SPREAD
from airbo.optimizer.search import (
    N_RAW,
    N_RESTARTS,
    initial_point,
    without_numerical_warnings,
)
from airbo.problems.truth import (
    N_IN_PART,
    N_PARTS,
    Function,
    Optimum,
    best_point,
    estimate,
    estimate_measure,
)
from airbo.seeds import reproducible
from airbo.space.cube import Cube

__all__ = [
    "MODE",
    "N_IN_PART",
    "N_PARTS",
    "N_RAW",
    "N_RESTARTS",
    "PORTION",
    "SPREAD",
    "STEPS",
    "Cube",
    "Features",
    "Function",
    "FunctionDraws",
    "Given",
    "Measure",
    "Optimum",
    "Parts",
    "SampledEmbedding",
    "UnseenInputLikelihood",
    "best_point",
    "estimate",
    "estimate_measure",
    "initial_point",
    "lengthscale_prior",
    "log_normal",
    "nystrom_weights",
    "observation_noise",
    "positive",
    "reproducible",
    "scaled",
    "with_local_spread",
    "without_numerical_warnings",
]
