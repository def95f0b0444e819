"""The surrogates that are compared, by the names that the paper gives them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from botorch import fit_gpytorch_mll
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from airbo.embeddings import Empirical, Estimator, Nystrom, default_base_kernel
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, NominalGP
from experiments.subjects.internals import without_numerical_warnings
from experiments.subjects.redrawn import redrawn

MODELS: dict[str, Callable[..., Any]] = {
    "mmd": MMDGP,
    "ugp": UGP,
    "nominal": NominalGP,
    "skl": SKLGP,
    "erbf": ERBFGP,
}
NARROW = ("mmd", "ugp")
"""Surrogates that get a narrower prior than the library's if they have no estimator."""
ESTIMATORS: dict[str, Callable[..., Any]] = {"Empirical": Empirical, "Nystrom": Nystrom}


@dataclass(frozen=True)
class Method:
    """A surrogate with its estimator."""

    label: str
    model: str
    """One of ``MODELS``."""
    estimator: Estimator | None = None
    """None: the library's default, where the surrogate needs one."""

    def config(self) -> dict[str, Any]:
        """Return what a result depends on, JSON-able."""
        if self.estimator is None:
            return {"model": self.model}
        kind = type(self.estimator).__name__
        settings = asdict(self.estimator)  # type: ignore[call-overload]
        return {"model": self.model, "estimator": {"kind": kind, **settings}}


def surrogate(config: dict[str, Any], seed: int) -> Callable[..., Any]:
    """Build a factory of models from a configuration; ``seed`` fixes the draws of estimators.

    With ``draws="redrawn"``, samples are independent and made anew in every call.
    """
    model, given = MODELS[config["model"]], dict(config.get("estimator", {}))
    if given:
        estimator = ESTIMATORS[given.pop("kind")](**given)
        if config.get("draws") == "redrawn":
            return redrawn(model, estimator, seed)
        return partial(model, estimator=estimator, seed=seed)
    return partial(narrow(model) if config["model"] in NARROW else model, seed=seed)


def fit(model: Any) -> Any:
    """Fit the hyper-parameters and return the model."""
    with without_numerical_warnings():
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def narrow(model: Callable[..., Any]) -> Callable[..., Any]:
    """Return a surrogate with a narrower prior of its length scales than the library's.

    All results with the default estimator use it.
    """

    def build(X: Tensor, *args: Any, **kwargs: Any) -> Any:
        kernel = default_base_kernel(X.shape[-1], spread=0.5)
        return model(X, *args, base_kernel=kernel, **kwargs)

    return build


NYSTROM = Method("MMDGP-nystrom(160/10)", "mmd", Nystrom(160, 10))
DEFAULT = Method("MMDGP (default estimator)", "mmd")
UGP_40 = Method("uGP(40)", "ugp", Empirical(40))
UGP_160 = Method("uGP(160)", "ugp", Empirical(160))
GP = Method("GP", "nominal")
SKL = Method("SKL", "skl")
ERBF = Method("ERBF", "erbf")
