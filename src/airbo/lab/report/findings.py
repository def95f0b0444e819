"""What an optimizer has found out, worked out once for all sections that show it.

``Findings`` is about designs: which one to use and where it lands. ``OutcomeFindings`` is about the
values of one outcome. Everything is computed when it is first needed, and only once.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float as Array
from numpy.typing import NDArray
from torch import Tensor

from airbo import words
from airbo.analysis import Handover, Outlook, look_ahead
from airbo.lab.digits import Digits, digits_of
from airbo.lab.report.beliefs import Beliefs, Estimate
from airbo.measures import Mean
from airbo.models import ERBFGP, UGP
from airbo.observed import INFEASIBLE, OK, STATUS, VALUE
from airbo.optimizer import Design, Optimizer, Recommendation, TooLittleDataWarning
from airbo.optimizer.goal import OutcomeModel
from airbo.optimizer.recommendation import OutcomeEstimate
from airbo.outcomes import Want, objectives
from airbo.space import Space
from airbo.space.cube import Cube
from airbo.space.parameters import Parameter
from airbo.uncertainty import InputUncertainty, base_draws

N_DRAWS = 4096
FEW_VALUES = 30
"""A parameter with at most so many values is shown as single points."""


class Findings:
    """Which design an optimizer holds best, and what is known of each outcome there."""

    def __init__(
        self,
        optimizer: Optimizer,
        units: Mapping[str, str | None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """Look at an optimizer.

        Args:
            optimizer: It is not changed.
            units: Units of the outcomes by name.
            numbers: What people call the experiments by, in the order in which they were told; by
                default they are counted from 1.
        """
        self.optimizer = optimizer
        self.units = dict(units or {})
        n = len(optimizer.observations)
        self.numbers = list(range(1, n + 1)) if numbers is None else list(numbers)
        if len(self.numbers) != n:
            raise ValueError(f"There are {n} experiments, but {len(self.numbers)} numbers.")

    # -- what is wanted, and what was measured

    @property
    def outcomes(self) -> Mapping[str, Want]:
        """What is wanted of each outcome."""
        return self.optimizer.outcomes

    @property
    def is_single(self) -> bool:
        """Whether one outcome decides alone: no limits, and no designs that cannot be used."""
        infeasible = self.optimizer.observations[STATUS] == INFEASIBLE
        return len(self.outcomes) == 1 and not infeasible.any()

    @property
    def is_by_mean(self) -> bool:
        """Whether the mean of one outcome decides, so that further experiments can be valued."""
        [want, *_] = objectives(self.outcomes).values()
        return self.is_single and isinstance(want.measure, Mean)

    @property
    def missing(self) -> list[str]:
        """Outcomes that no experiment has measured: as long as there are any, nothing is known."""
        return [o.name for o in self.parts if not o.values.notna().any()]

    @cached_property
    def parts(self) -> "list[OutcomeFindings]":
        """What is known of each outcome."""
        return [OutcomeFindings(self, name) for name in self.outcomes]

    # -- the answer

    @cached_property
    def _answer(self) -> tuple[Recommendation, bool]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            best = self.optimizer.recommend()
        doubts = [w for w in caught if issubclass(w.category, TooLittleDataWarning)]
        for other in caught:
            if other not in doubts:
                warnings.warn(other.message, stacklevel=2)
        return best, bool(doubts)

    @property
    def best(self) -> Recommendation:
        """The recommendation."""
        return self._answer[0]

    @property
    def is_doubtful(self) -> bool:
        """Whether too little is known to recommend a design."""
        return self._answer[1]

    @cached_property
    def expected(self) -> Mapping[str, OutcomeEstimate]:
        """What the model predicts for each outcome of the recommended design."""
        return self.best.outcomes

    @cached_property
    def front(self) -> list[Recommendation]:
        """The designs that no other one beats by all objectives."""
        return self.optimizer.front()

    @cached_property
    def handover(self) -> Handover:
        """Operating window and tolerance budgets, where there are limits."""
        return Handover.of(self.optimizer, self.best.design)

    # -- where designs land

    @property
    def space(self) -> Space:
        """The parameters."""
        return self.optimizer.space

    @cached_property
    def cube(self) -> Cube:
        """The unit cube of the parameters."""
        return Cube(self.space)

    @property
    def deployment(self) -> InputUncertainty:
        """Where designs land in use."""
        return self.optimizer.deployment

    @property
    def uncertain(self) -> list[str]:
        """Names of the parameters that are not hit exactly in use."""
        columns = self.deployment.uncertain_columns(self.space.d)
        return [self.space.names[column] for column in columns]

    @cached_property
    def center(self) -> Array[Tensor, "1 d"]:
        """The recommended design as columns."""
        return self.cube.columns(self.best.design, allow_outside=True)

    @cached_property
    def executed(self) -> Array[Tensor, "s d"]:
        """Draws of where the recommended design lands in use, as columns."""
        draws = base_draws(N_DRAWS, self.deployment.n_base(self.space.d))
        return self.deployment.perturb(self.center, draws)[0]

    def executed_interval(self, name: str) -> tuple[float, float]:
        """Return where a parameter lands in 95 of 100 cases, at the recommended design."""
        column = self.executed[:, self.space.names.index(name)].numpy()
        low, high = np.quantile(column, [0.025, 0.975])
        return float(low), float(high)

    # -- parameters in words

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name, or say which there are."""
        if name not in self.space.names:
            raise ValueError(f"Unknown parameter {name!r}{self.space.hint(name)}")
        return self.space.parameters[name]

    def shown(self, name: str, value: Any) -> str:
        """Write the value of a parameter in the digits that the machine can hold, and its unit."""
        return words.with_unit(self.bare(name, value), words.unit_of(self.parameter(name)))

    def bare(self, name: str, value: Any) -> str:
        """Write the same without the unit."""
        digits = self._digits.get(name)
        if digits is None:
            return words.bare(self.parameter(name), value)
        return words.fixed(digits.round(value), digits.places_of(value))

    @cached_property
    def _digits(self) -> dict[str, Digits]:
        return digits_of(self.space, self.optimizer.uncertainty)

    # -- designs along parameters

    def grid(self, name: str, n: int) -> NDArray[np.float64]:
        """Return values of a parameter as numbers, about ``n`` if it is a number."""
        column = self.space.names.index(name)
        parameter = self.space.parameters[name]
        n_values = self.space.n_values.get(column)
        if n_values is not None and (n_values <= n or column in self.space.categorical_columns):
            positions = np.array(self.cube.values(column))
        else:
            positions = np.linspace(0, 1, n)
        values = self.values_at(name, positions, rounded=True).tolist()
        return np.unique([parameter.encode(parameter.decode(value)) for value in values])

    def values_at(
        self, name: str, positions: NDArray[np.float64], rounded: bool = False
    ) -> NDArray[np.float64]:
        """Return the values of a parameter at positions between 0 and 1 of its range."""
        column = self.space.names.index(name)
        F = torch.zeros(len(positions), self.space.d, dtype=torch.float64)
        F[:, column] = torch.from_numpy(positions)
        return self.cube.axes.to_columns(self.cube.round(F) if rounded else F)[:, column].numpy()

    def positions_of(self, name: str, X: Array[Tensor, "n d"]) -> NDArray[np.float64]:
        """Return where designs stand in the range of a parameter, from 0 to 1."""
        return self.cube.axes.from_columns(X)[:, self.space.names.index(name)].numpy()

    def along(self, columns: dict[str, NDArray[np.float64]]) -> Array[Tensor, "n d"]:
        """Return the recommended design with some parameters replaced, value by value."""
        n = len(next(iter(columns.values())))
        X = self.center.repeat(n, 1)
        for name, values in columns.items():
            X[:, self.space.names.index(name)] = torch.from_numpy(values)
        return X

    def is_discrete(self, name: str) -> bool:
        """Whether a parameter is shown as single points."""
        column = self.space.names.index(name)
        integer = column in self.space.integer_columns
        return integer or self.space.n_values.get(column, math.inf) <= FEW_VALUES

    def allowed(self, X: Array[Tensor, "n d"]) -> Array[Tensor, "k d"]:
        """Return those of some designs that meet all constraints, after solving equalities."""
        if not self.space.constraints:
            return X
        rows = self.space.polytope.solved(X.numpy())
        return torch.from_numpy(rows[self.space.polytope.holds(rows)])

    def inside(self, designs: list[Design]) -> list[bool]:
        """Say which designs lie in the ranges and meet the constraints."""
        F = self.cube.fold(self.cube.from_designs(designs, allow_outside=True))
        inside: list[bool] = (F.sub(0.5).abs().amax(-1) <= 0.5 + 1e-9).tolist()
        return [is_in and self.space.meets(d) for d, is_in in zip(designs, inside, strict=True)]


class OutcomeFindings:
    """What is known of the expected value of one outcome."""

    def __init__(self, findings: Findings, name: str) -> None:
        """Look at an outcome.

        Args:
            findings: About the designs.
            name: Of the outcome.
        """
        self.findings = findings
        self.name = name
        self.want = findings.outcomes[name]
        self.unit = findings.units.get(name)

    @property
    def label(self) -> str:
        """The name with the unit, as on an axis."""
        return words.label(self.name, self.unit)

    def written(self, estimate: words.MeanAndStd) -> str:
        """Write mean ± standard deviation and the unit."""
        return words.with_unit(words.plus_minus(estimate), self.unit)

    # -- what was observed

    @property
    def values(self) -> Any:
        """The observed values, one per experiment; NaN where it failed or was not measured."""
        return self.findings.optimizer.observations[self.name]

    @cached_property
    def model(self) -> OutcomeModel:
        """The fitted model."""
        return self.findings.optimizer.outcome_model(self.name)

    @cached_property
    def known(self) -> Any:
        """The experiments that measured it, as a table with their numbers."""
        table = self.findings.optimizer.observations
        whole = table.assign(**{VALUE: self.values}).set_axis(self.findings.numbers)
        return whole[(whole[STATUS] == OK) & whole[VALUE].notna()]

    @cached_property
    def designs(self) -> Array[Tensor, "n d"]:
        """The designs of the experiments that measured it, as columns."""
        rows = self.known[list(self.findings.space.names)]
        return self.findings.cube.columns(rows, allow_outside=True)

    # -- what the model expects

    @cached_property
    def here(self) -> Estimate:
        """The expected value at the recommended design, also where a measure decides."""
        return self.beliefs.expected(self.findings.center)[0]

    @cached_property
    def beliefs(self) -> Beliefs:
        """What the model says of any designs."""
        return Beliefs.of(self.model)

    @cached_property
    def what_if(self) -> Beliefs | None:
        """The same model, if it can say what other uncertainties would do.

        Its kernel has to be linear in P, so that it can compose one expectation from others.
        """
        return self.beliefs if isinstance(self.beliefs.model, UGP | ERBFGP) else None

    @cached_property
    def if_exact(self) -> Beliefs | None:
        """What it says of designs that are hit exactly, if it can."""
        return self.what_if and self.what_if.under(self.findings.deployment.scaled(0))

    @property
    def in_use(self) -> Array[Tensor, "S s"]:
        """Draws of the values at the recommended design, over where it lands."""
        return self.model.values(self.findings.best.design)

    @cached_property
    def outlook(self) -> Outlook:
        """What further experiments can bring, and what the recommendation is based on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)  # ``is_doubtful`` says it
            return look_ahead(self.findings.optimizer.of_outcome(self.name))

    @property
    def limits(self) -> list[float]:
        """The limits of its values."""
        return [limit for limit in self.want.bounds if limit is not None]

    def is_in_spec(self, value: float) -> bool:
        """Whether a value is within its limits; also where there are none."""
        low, high = self.want.bounds
        return (low is None or value >= low) and (high is None or value <= high)
