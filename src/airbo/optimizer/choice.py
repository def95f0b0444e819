"""Recommendations if there are limits or several objectives."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from airbo.acquisition.improvement import FeasibleValue, undominated
from airbo.measures.kinds import check_level
from airbo.measures.posterior import RECOMMEND
from airbo.optimizer.goals import Goals
from airbo.optimizer.judgement import Judged, judge, recommended
from airbo.optimizer.recommendation import Recommendation, TooLittleDataWarning
from airbo.optimizer.record import History
from airbo.optimizer.search import best_design, spread_designs, without_numerical_warnings
from airbo.outcomes import limits, objectives
from airbo.space import Design
from airbo.words import listed

CONFIDENCE = 0.9
"""Required probability, according to the model, that the limits are kept."""


@dataclass(frozen=True)
class Choice:
    """Chooses among designs."""

    goals: Goals
    history: History
    policy: Literal["observed", "anywhere"]
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        check_level(self.confidence, "confidence")

    def recommend(self) -> Recommendation:
        """Recommend the best design that keeps the limits, or the compromise of the front."""
        judged = self._candidates()
        safe = [j for j in judged if j.holds >= self.confidence]
        if not safe:
            return self._most_likely(judged)
        if len(safe[0].worth) > 1:
            return self._compromise(self._front(safe))
        best = max(safe, key=lambda j: j.worth)
        [name] = objectives(self.goals.outcomes)
        reason = f"Best {name} of {self._among()}."
        return self._recommended([best], reason)[0]

    def front(self) -> list[Recommendation]:
        """Return the designs that keep the limits and that no other one beats by all objectives."""
        judged = self._candidates()
        safe = [j for j in judged if j.holds >= self.confidence]
        if judged and not safe:
            most = max(j.holds for j in judged)
            reason = f"{self._none(judged)} The front is empty; the most likely design: {most:.2f}."
            warnings.warn(reason, TooLittleDataWarning, stacklevel=4)
        reason = f"On the front of {self._among()}."
        return self._recommended(self._front(safe), reason)

    def _recommended(self, chosen: Sequence[Judged], reason: str) -> list[Recommendation]:
        return recommended(self.goals, self.history, chosen, reason)

    def _candidates(self) -> list[Judged]:
        """Judge the tried designs, and others if the policy allows designs anywhere."""
        tried = self.history.tried
        others = [] if self.policy == "observed" else self._others()
        return judge(self.goals, self.history, [*tried, *others])

    def _others(self) -> list[Design]:
        cube = self.history.points.cube
        if len(objectives(self.goals.outcomes)) > 1:
            return cube.to_designs(spread_designs(cube))
        tried = self.history.points.of(self.history.tried)
        draws = self.goals.draws(self.history, RECOMMEND)
        with without_numerical_warnings():
            Z = best_design(FeasibleValue(draws, tried, self.confidence), cube, start=tried)
        return cube.to_designs(Z)

    def _front(self, judged: Sequence[Judged]) -> list[Judged]:
        """Return the undominated designs, ordered by the first objective."""
        if not judged:
            return []
        Y = torch.tensor([j.worth for j in judged], dtype=torch.float64)
        front = [j for j, on in zip(judged, undominated(Y), strict=True) if on]
        return sorted(front, key=lambda j: j.worth, reverse=True)

    def _compromise(self, front: Sequence[Judged]) -> Recommendation:
        """Recommend the design whose largest loss in any objective is smallest."""
        Y = torch.tensor([j.worth for j in front], dtype=torch.float64)
        best, span = Y.amax(0), Y.amax(0) - Y.amin(0)
        given_up = ((best - Y) / torch.where(span > 0, span, 1.0)).amax(-1)  # (n,)
        i = int(given_up.argmin())
        reason = self._compromise_words(len(front), given_up[i])
        return self._recommended([front[i]], reason)[0]

    def _compromise_words(self, n: int, given_up: Tensor) -> str:
        """Say how the compromise was chosen; one or two designs leave nothing to weigh up."""
        if n == 1:
            return f"No other one of {self._among()} beats this design by any objective."
        if n == 2:
            first = next(iter(objectives(self.goals.outcomes)))
            return (
                "There is no compromise yet: the front has two designs, each best by another "
                f"objective. This one has the best {first}."
            )
        return (
            f"The compromise on a front of {n} designs: it gives up at most {given_up:.0%} of the "
            "range of any objective along the front."
        )

    def _most_likely(self, judged: Sequence[Judged]) -> Recommendation:
        """Recommend the design that is most likely to keep the limits, and warn."""
        best = max(judged, key=lambda j: (j.holds, j.worth))
        reason = f"{self._none(judged)} This one is the most likely to: {best.holds:.2f}."
        warnings.warn(reason, TooLittleDataWarning, stacklevel=5)
        return self._recommended([best], reason)[0]

    def _none(self, judged: Sequence[Judged]) -> str:
        """Say that no design keeps all limits, and which limit is the hardest to keep."""
        words = (
            f"No design is known to keep all limits with a confidence of {self.confidence:g} "
            f"({self._limits()})."
        )
        names = [n for n, estimate in judged[0].outcomes.items() if estimate.holds is not None]
        single = {n: max(j.outcomes[n].holds or 0.0 for j in judged) for n in names}
        name = min(single, key=lambda n: single[n])
        if len(single) == 1 or single[name] >= self.confidence:
            return words
        return f"{words} The hardest to keep is {name}: {single[name]:.2f} at best."

    def _among(self) -> str:
        where = "tried designs" if self.policy == "observed" else "designs of the space"
        if not self._limits():
            return f"the {where}"
        return f"the {where} that keep all limits with a confidence of {self.confidence:g} or more"

    def _limits(self) -> str:
        """Say which limits there are; that designs can be used is one if something could not."""
        used = limits({goal.name: goal.outcome for goal in self.goals.used(self.history)})
        return listed([limit.words(name) for name, limit in used.items()])
