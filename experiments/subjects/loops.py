"""Optimization step by step, the same for our optimizer and for others."""

import warnings
from typing import Any, Literal, Protocol

import numpy as np
from torch import Tensor

import airbo
from airbo.acquisition import UCB
from airbo.measures import Measure
from experiments.subjects.acquisitions import TRIED
from experiments.subjects.cases import Case

Design = list[float]
Policy = Literal["observed", "anywhere"]


class Loop(Protocol):
    """Proposes designs, takes observed values, and names the design that it would use."""

    def ask(self) -> Design:
        """Propose a design."""

    def tell(self, design: Design, value: float) -> None:
        """Report an observed value."""

    def outcome(self, policy: Policy) -> Design:
        """Return the best design, among those tried (``"observed"``) or ``"anywhere"``."""

    def predict(self, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation of the expected value of designs in use."""


class OptimizerLoop:
    """``airbo.Optimizer`` with any of its surrogates."""

    def __init__(
        self,
        case: Case,
        surrogate: Any,
        protocol: dict[str, Any],
        seed: int,
        measure: Measure | None = None,
    ) -> None:
        """Start without observations; the first designs depend only on the seed."""
        self.optimizer = airbo.Optimizer(
            case.space,
            case.tried_under,
            case.problem.direction,
            surrogate,
            acquisition(protocol),
            seed=seed,
            deployment=None if case.same_use else case.problem.uncertainty,
            n_initial=protocol["n_initial"],
            initial=protocol["initial"],
            measure=measure,
        )
        self.batch: int = protocol.get("batch", 1)
        self.waiting: list[Design] = []

    def ask(self) -> Design:
        if not self.waiting:
            self.waiting = [list(design.values()) for design in self.optimizer.ask(self.batch)]
        return self.waiting.pop(0)

    def tell(self, design: Design, value: float) -> None:
        self.optimizer.tell(self._named(design), value)

    def outcome(self, policy: Policy) -> Design:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", airbo.TooLittleDataWarning)
            return list(self.optimizer.recommend(policy=policy).design.values())

    def predict(self, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
        table = self.optimizer.predict([self._named(row) for row in X.tolist()])
        return table["mean"].to_numpy(), table["std"].to_numpy()

    def _named(self, design: Design) -> dict[str, float]:
        return dict(zip(self.optimizer.space.names, design, strict=True))


def acquisition(protocol: dict[str, Any]) -> Any:
    """Return the function that the next design maximizes."""
    name = protocol["acquisition"]
    return UCB(beta=protocol["beta"]) if name == "ucb" else TRIED.get(name, name)
