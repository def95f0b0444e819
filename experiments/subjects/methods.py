"""The surrogates that are compared, by the names that the paper gives them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from torch import Tensor

from airbo.embeddings import Empirical, Estimator, Nystrom, default_base_kernel
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP, RelevanceGP
from experiments.subjects.candidates import CANDIDATES, WIDER
from experiments.subjects.cases import Case
from experiments.subjects.family import FAMILY
from experiments.subjects.hedged import HedgedGP
from experiments.subjects.loops import Loop, OptimizerLoop
from experiments.subjects.peers import PEERS
from experiments.subjects.redrawn import redrawn

MODELS: dict[str, Callable[..., Any]] = {
    "mmd": MMDGP,
    "ugp": UGP,
    "nominal": NominalGP,
    "skl": SKLGP,
    "erbf": ERBFGP,
    "expectation": ExpectationGP,
    "relevance": RelevanceGP,
    "hedged": HedgedGP,
    "mmd, the library's prior": MMDGP,
    "ugp, the library's prior": UGP,
    **CANDIDATES,
    **WIDER,
    **FAMILY,
}
NARROW = ("mmd", "ugp")
"""Surrogates that get a narrower prior than the library's if they have no estimator."""
ESTIMATORS: dict[str, Callable[..., Any]] = {"Empirical": Empirical, "Nystrom": Nystrom}


@dataclass(frozen=True)
class Method:
    """A surrogate with its estimator, or a peer."""

    label: str
    model: str
    """One of ``MODELS`` or of ``PEERS``."""
    estimator: Estimator | None = None
    """None: the library's default, where the surrogate needs one."""
    acquisition: str | None = None
    """None: that of the experiment."""
    draws: str = "held"
    """``"redrawn"``: independent samples that are made anew in every call."""
    protocol: tuple[tuple[str, Any], ...] = ()
    """What is different from the protocol of the experiment."""

    def config(self) -> dict[str, Any]:
        """Return what a result depends on, JSON-able."""
        if self.estimator is None:
            return {"model": self.model}
        kind = type(self.estimator).__name__
        settings = asdict(self.estimator)  # type: ignore[call-overload]
        config = {"model": self.model, "estimator": {"kind": kind, **settings}}
        return config if self.draws == "held" else {**config, "draws": self.draws}


def surrogate(config: dict[str, Any], seed: int) -> Callable[..., Any]:
    """Build a factory of models from a configuration; ``seed`` fixes the draws of estimators."""
    model, given = MODELS[config["model"]], dict(config.get("estimator", {}))
    if given:
        estimator = ESTIMATORS[given.pop("kind")](**given)
        if config.get("draws") == "redrawn":
            return redrawn(model, estimator, seed)
        return partial(model, estimator=estimator, seed=seed)
    return partial(narrow(model) if config["model"] in NARROW else model, seed=seed)


def narrow(model: Callable[..., Any]) -> Callable[..., Any]:
    """Return a surrogate with a narrower prior of its length scales than the library's.

    All results with the default estimator use it. The effect is small, as
    docs/choosing-evidence.md says.
    """

    def build(X: Tensor, *args: Any, **kwargs: Any) -> Any:
        kernel = default_base_kernel(X.shape[-1], spread=0.5)
        return model(X, *args, base_kernel=kernel, **kwargs)

    return build


def start(config: dict[str, Any], case: Case, seed: int) -> Loop:
    """Begin an optimization by the method of a configuration."""
    if config["model"] in PEERS:
        return PEERS[config["model"]](case, config["protocol"], seed)
    return OptimizerLoop(case, surrogate(config, seed), config["protocol"], seed)


NYSTROM = Method("MMDGP-nystrom(160/10)", "mmd", Nystrom(160, 10))
NYSTROM_REDRAWN = Method("MMDGP-nystrom(160/10), redrawn", "mmd", Nystrom(160, 10), draws="redrawn")
"""The paper's own: the program that the authors published draws its samples in every call."""
DEFAULT = Method("MMDGP (default estimator)", "mmd")
UGP_40 = Method("uGP(40)", "ugp", Empirical(40))
UGP_160 = Method("uGP(160)", "ugp", Empirical(160))
GP = Method("GP", "nominal")
SKL = Method("SKL", "skl")
ERBF = Method("ERBF", "erbf")
UGP_DEFAULT = Method("uGP (default estimator)", "ugp")
EXPECTATION = Method("ExpectationGP", "expectation")
EXPECTATION_RANDOM = Method(
    "ExpectationGP, randomized UCB", "expectation", acquisition="ucb-random"
)
RELEVANCE = Method("RelevanceGP", "relevance")
RELEVANCE_RANDOM = Method("RelevanceGP, randomized UCB", "relevance", acquisition="ucb-random")
BOTORCH = Method("BoTorch SingleTaskGP", "botorch")
BOTORCH_PERTURBED = Method("BoTorch InputPerturbation", "botorch-perturbed")
