"""Which design to use: the best one that keeps all limits, or the compromise of a front.

Notation
    Y (n k)   what n designs are worth by k objectives, as the model expects it; larger is better
    holds     probability, over what the model does not know, that all limits are kept
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from jaxtyping import Float
from torch import Tensor

from airbo.acquisition.improvement import FeasibleValue, undominated
from airbo.measures.posterior import COARSE, FINE, RECOMMEND, Effort
from airbo.optimizer.goal import OutcomeDraws, OutcomeModel, effort_for
from airbo.optimizer.recommendation import OutcomeEstimate, Recommendation, TooLittleDataWarning
from airbo.optimizer.record import History
from airbo.optimizer.search import (
    best_design,
    between,
    spread_designs,
    without_numerical_warnings,
)
from airbo.outcomes import FEASIBLE, Limit
from airbo.space import Design
from airbo.words import listed

Policy = Literal["observed", "anywhere"]
"""Which designs may be recommended: those that were tried, or all of the space."""
CONFIDENCE = 0.9
"""Required probability, according to the model, that the limits are kept."""
N_FINALISTS = 8
"""Number of designs that are compared closely before one is recommended by a measure."""
N_BETWEEN = 16
"""Number of designs on the way from the best tried one to the best one of the space."""
CLEARLY = 0.25
"""How far a design that was not tried has to be ahead of the best tried one to be recommended, in
standard deviations of the difference."""
N_DIFFERENCES = 512
"""Draws from which that standard deviation is estimated."""


@dataclass(frozen=True)
class Candidate:
    """A design that may be recommended, and what the model predicts of it."""

    design: Design
    worth: tuple[float, ...]
    """The objectives; larger is better."""
    outcomes: Mapping[str, OutcomeEstimate]
    holds: float
    """Probability that every limit is kept with its required probability."""


def candidates_among(
    outcomes: Sequence[OutcomeModel],
    Z: Float[Tensor, "n m"],
    designs: Sequence[Design],
    effort: Effort | None = None,
) -> list[Candidate]:
    """Predict the outcomes of designs in use; ``Z`` is where they lie in the unit cube."""
    # estimates of every outcome, and of limits the draws (S, n) that keep them
    names = [o.goal.name for o in outcomes]
    found = [o.estimates(Z, effort) for o in outcomes]
    # one draw of f keeps all limits where it keeps each: draws of the outcomes go side by side
    kept = [own for _, own in found if own is not None]
    together = torch.stack(kept).all(0) if kept else torch.ones(1, len(Z))  # (S, n)
    signs = [0 if o.is_limit else 1 if o.factor > 0 else -1 for o in outcomes]
    candidates = []
    for i, holds in enumerate(together.double().mean(0).tolist()):
        estimates = [own[i] for own, _ in found]
        worth = tuple(s * e.mean for s, e in zip(signs, estimates, strict=True) if s)
        named = dict(zip(names, estimates, strict=True))
        candidates.append(Candidate(dict(designs[i]), worth, named, holds))
    return candidates


@dataclass(frozen=True)
class Choice:
    """Chooses among designs."""

    outcomes: Sequence[OutcomeModel]
    """The models of all outcomes, of one objective at least."""
    history: History
    policy: Policy | None
    """None: the tried designs, and another one if it is clearly better than the best of them."""
    confidence: float = CONFIDENCE
    """How sure the model has to be that all limits are kept."""

    @property
    def _objectives(self) -> list[OutcomeModel]:
        return [o for o in self.outcomes if not o.is_limit]

    @property
    def _limits(self) -> dict[str, Limit]:
        wants = {o.goal.name: o.goal.want for o in self.outcomes}
        return {name: want for name, want in wants.items() if isinstance(want, Limit)}

    def recommend(self) -> Recommendation:
        """Recommend the best design that keeps the limits, or the compromise of the front."""
        # max y  s.t.  P(limits are kept) >= confidence
        found = self._candidates()
        safe = self._safe(found)
        if not safe:
            return self._most_likely(found)
        if len(self._objectives) > 1:
            return self._compromise(self._front(safe))
        best = max(safe, key=lambda c: c.worth)
        if len(self.outcomes) > 1:
            reason = f"Best {self._objectives[0].goal.name} of {self._among()}."
            return self._recommended([best], reason)[0]
        [recommendation] = self._recommended([best])
        self._warn_if_blind(recommendation)
        return recommendation

    def front(self) -> list[Recommendation]:
        """Return the designs that keep the limits and that no other one beats by all objectives."""
        if len(self.outcomes) == 1:
            return [self.recommend()]
        found = self._candidates()
        safe = self._safe(found)
        if found and not safe:
            most = max(c.holds for c in found)
            reason = f"{self._none(found)} The front is empty; the most likely design: {most:.2f}."
            warnings.warn(reason, TooLittleDataWarning, stacklevel=4)
        return self._recommended(self._front(safe), f"On the front of {self._among()}.")

    # -- candidates

    def _candidates(self) -> list[Candidate]:
        """Predict the tried designs, and others if the policy allows them."""
        tried = self.history.tried
        found = self._predicted(self._shortlist(tried)) if tried else []
        if self.policy == "observed" and not found:
            raise ValueError(f"No experiment has {self.history.points.cube.held}.")
        if self.policy == "observed":
            return found
        # the best tried one of those that keep the limits, or that most likely do
        best = max(found, key=lambda c: (min(c.holds, self.confidence), c.worth), default=None)
        others = self._predicted(self._elsewhere(best))
        if self.policy == "anywhere" or best is None:
            return [*found, *others]
        return [*found, *(c for c in others if self._is_clearly_better(c, best))]

    def _safe(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the designs that keep the limits; if these are strict, the best ones of them."""
        safe = [c for c in found if c.holds >= self.confidence]
        closer = effort_for(list(self._limits.values()))
        if closer is None or not safe:
            return safe
        # far tails take many executed inputs, so the best designs are looked at one by one
        confirmed: list[Candidate] = []
        has_front = len(self._objectives) > 1
        best_first = self._front(safe) if has_front else sorted(safe, key=lambda c: c.worth)[::-1]
        for c in best_first[:N_FINALISTS] if has_front else best_first:
            Z = self.history.points.of([c.design])
            [seen] = candidates_among(self.outcomes, Z, [c.design], closer)
            confirmed += [seen] if seen.holds >= self.confidence else []
            if confirmed and not has_front:
                break
        return confirmed

    def _predicted(self, designs: Sequence[Design]) -> list[Candidate]:
        return candidates_among(self.outcomes, self.history.points.of(designs), designs)

    def _shortlist(self, designs: list[Design]) -> list[Design]:
        """Return the designs to look at closely: all, unless draws of one measure rank them."""
        # argsort of the measure by COARSE draws; its best N_FINALISTS are looked at closely
        only = self.outcomes[0]
        if len(self.outcomes) > 1 or only.is_mean or len(designs) <= N_FINALISTS:
            return designs
        # few draws rank many designs; many draws then compare the best few
        means, _ = only.predict(self.history.points.of(designs), COARSE)
        ranked = (means / only.factor).argsort(descending=True)
        return [designs[int(i)] for i in ranked[:N_FINALISTS]]

    def _elsewhere(self, best: Candidate | None) -> list[Design]:
        """Return designs from the whole space: many for a front, otherwise the best one.

        With limits, few draws say where that is, and it lies at the edge of what many draws allow.
        So designs on the way to it from the ``best`` tried one stand by.
        """
        # argmax of the posterior mean; with limits, where P(limits are kept) is large enough
        cube, tried = self.history.points.cube, self.history.points.of(self.history.tried)
        if len(self._objectives) > 1:
            return cube.to_designs(spread_designs(cube))
        function: AcquisitionFunction
        with without_numerical_warnings():
            if len(self.outcomes) == 1:
                function = PosteriorMean(self.outcomes[0].of_measure(RECOMMEND))
            else:
                draws = OutcomeDraws(self.outcomes, RECOMMEND)
                function = FeasibleValue(draws, tried, self.confidence)
            Z = best_design(function, cube, start=tried)
        if best is not None and self._limits:
            Z = between(cube, self.history.points.of([best.design]), Z, N_BETWEEN)
        return cube.to_designs(Z)

    def _is_clearly_better(self, other: Candidate, tried: Candidate) -> bool:
        """Say whether one objective is larger by more than chance would have it.

        Where μ is higher by CLEARLY standard deviations of the difference F(other) - F(tried).
        """
        only = self._objectives[0]
        Z = self.history.points.of([other.design, tried.design])
        with torch.no_grad(), without_numerical_warnings():
            posterior = only.of_measure(FINE).posterior(Z)
            draws = posterior.rsample(torch.Size([N_DIFFERENCES])).squeeze(-1)  # (S, 2)
        scatter = abs(only.factor) * (draws[:, 0] - draws[:, 1]).std().item()
        return other.worth[0] - tried.worth[0] > CLEARLY * scatter

    def _front(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the undominated designs, ordered by the first objective."""
        if not found:
            return []
        # c is on the front if no other is at least as good by all objectives and better by one
        Y = torch.tensor([c.worth for c in found], dtype=torch.float64)
        front = [c for c, on in zip(found, undominated(Y), strict=True) if on]
        return sorted(front, key=lambda c: c.worth, reverse=True)

    # -- recommendations

    def _recommended(self, chosen: Sequence[Candidate], reason: str = "") -> list[Recommendation]:
        """Turn designs into recommendations, with what quality people ask for.

        That takes many executed inputs, so it is worked out for the chosen designs only.
        """
        if not chosen:
            return []
        # shares in spec take many executed inputs: worked out for these few alone
        designs = [c.design for c in chosen]
        columns = {o.goal.name: o.capabilities(designs) for o in self.outcomes}
        first, found = self._objectives[0].goal.name, []
        for i, c in enumerate(chosen):
            own = {n: e.with_capability(columns[n][i]) for n, e in c.outcomes.items()}
            if FEASIBLE in own:  # it works or not: a share says it, a Cpk says nothing
                own[FEASIBLE] = replace(own[FEASIBLE], capability=None)
            main, holds = own[first], c.holds if self._limits else None
            found.append(
                Recommendation(c.design, main.mean, main.std, main.capability, own, holds, reason)
            )
        return found

    def _compromise(self, front: Sequence[Candidate]) -> Recommendation:
        """Recommend the design whose largest loss in any objective is smallest."""
        # min over designs of max over objectives of (best_j - y_j) / (best_j - worst_j)
        Y = torch.tensor([c.worth for c in front], dtype=torch.float64)  # (n, k)
        best, span = Y.amax(0), Y.amax(0) - Y.amin(0)
        given_up = ((best - Y) / torch.where(span > 0, span, 1.0)).amax(-1)  # (n,)
        i = int(given_up.argmin())
        reason = self._compromise_words(len(front), given_up[i].item())
        return self._recommended([front[i]], reason)[0]

    def _most_likely(self, found: Sequence[Candidate]) -> Recommendation:
        """Recommend the design that is most likely to keep the limits, and warn."""
        # argmax P(limits are kept); of equal ones the best
        best = max(found, key=lambda c: (c.holds, c.worth))
        reason = f"{self._none(found)} This one is the most likely to: {best.holds:.2f}."
        warnings.warn(reason, TooLittleDataWarning, stacklevel=5)
        return self._recommended([best], reason)[0]

    def _warn_if_blind(self, best: Recommendation) -> None:
        """Warn if the model knows too little to prefer one design to another."""
        # σ of the best design against the range of μ over the tried ones
        designs = self.history.tried or self.history.designs
        means, _ = self.outcomes[0].predict(self.history.points.of(designs), COARSE)
        n = len(self.history.known)
        if n < 3 or best.std > (means.max() - means.min()).item():
            warnings.warn(
                f"After {n} observation(s) the model cannot tell this design from the others: its "
                f"expected value is {best.mean:.4g} ± {best.std:.2g}.",
                TooLittleDataWarning,
                stacklevel=5,
            )

    # -- words

    def _compromise_words(self, n: int, given_up: float) -> str:
        """Say how the compromise was chosen; one or two designs leave nothing to weigh up."""
        if n == 1:
            return f"No other one of {self._among()} beats this design by any objective."
        if n == 2:
            return (
                "There is no compromise yet: the front has two designs, each best by another "
                f"objective. This one has the best {self._objectives[0].goal.name}."
            )
        return (
            f"The compromise on a front of {n} designs: it gives up at most {given_up:.0%} of the "
            "range of any objective along the front."
        )

    def _none(self, found: Sequence[Candidate]) -> str:
        """Say that no design keeps all limits, and which limit is the hardest to keep."""
        words = (
            f"No design is known to keep all limits with a confidence of {self.confidence:g} "
            f"({self._limit_words()})."
        )
        single = {n: max(c.outcomes[n].holds or 0.0 for c in found) for n in self._limits}
        name = min(single, key=lambda n: single[n])
        if len(single) == 1 or single[name] >= self.confidence:
            return words
        return f"{words} The hardest to keep is {name}: {single[name]:.2f} at best."

    def _among(self) -> str:
        where = "tried designs" if self.policy == "observed" else "designs of the space"
        if not self._limits:
            return f"the {where}"
        return f"the {where} that keep all limits with a confidence of {self.confidence:g} or more"

    def _limit_words(self) -> str:
        """Say which limits there are; that designs can be used is one if something could not."""
        return listed([limit.words(name) for name, limit in self._limits.items()])
