"""What is decided by which measure, and how it is tried."""

from dataclasses import dataclass

from airbo import measures, problems
from airbo import uncertainty as unc
from airbo.measures import Measure
from airbo.problems import Problem
from experiments.subjects.cases import Case

GROUPS = ("unseen", "exact")
"""Experiments land like the product, and nobody sees where; or they are exact simulations."""


@dataclass(frozen=True)
class MeasureCase:
    """A problem, the measure that counts, and whether experiments are exact."""

    problem: Problem
    measure: Measure
    group: str

    @property
    def case(self) -> Case:
        """The same for loops that know no measures."""
        tried = None if self.group == "unseen" else unc.Exact()
        return Case(
            f"{self.problem.name}, {self.measure}, {self.group}", "measure", self.problem, tried
        )

    @property
    def good(self) -> int:
        """1 if larger measures are better, otherwise -1."""
        sign = 1 if self.problem.direction == "maximize" else -1
        return 1 if self.measure.factor(sign, 1.0) > 0 else -1


_DECIDED: dict[str, tuple[Problem, Measure]] = {
    "double peak, CVaR of the worst fifth": (problems.DoublePeak(), measures.CVaR(0.8)),
    "hills, CVaR of the worst tenth": (problems.Hills(), measures.CVaR(0.9)),
    "hills, one error, CVaR of the worst tenth": (
        problems.Hills(unc.Normal(0.08)),
        measures.CVaR(0.9),
    ),
    "branin, reached by 90 of 100": (problems.Branin(), measures.Quantile(0.9)),
}
CASES: dict[str, MeasureCase] = {
    f"{name}, {group}": MeasureCase(problem, measure, group)
    for group in GROUPS
    for name, (problem, measure) in _DECIDED.items()
}
"""By their names."""
