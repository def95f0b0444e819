"""What an optimizer has found out, worked out once for all sections that show it.

``Findings`` is about designs: which one to use and where it lands. ``OutcomeFindings`` is about the
values of one outcome. Everything is computed when it is first needed, and only once.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float as Array
from numpy.typing import NDArray
from torch import Tensor

from airbo import words
from airbo.analysis import Handover, Outlook, look_ahead
from airbo.analysis.window import Specification
from airbo.lab.advice import held
from airbo.lab.digits import Places, digits_of
from airbo.measures import Mean
from airbo.measures.capability import Capability
from airbo.models import ERBFGP, UGP
from airbo.observed import INFEASIBLE, OK, STATUS, VALUE
from airbo.optimizer import Optimizer, Recommendation, TooLittleDataWarning
from airbo.optimizer.goal import OutcomeModel
from airbo.optimizer.recommendation import OutcomeEstimate
from airbo.outcomes import Aim, Bounds, objectives
from airbo.space import Design
from airbo.space.cube import Cube, Section
from airbo.space.parameters import Categorical, Parameter
from airbo.uncertainty import base_draws
from airbo.uncertainty.in_cube import in_cube

N_DRAWS = 4096
N_ALONG = 31
"""Values of a parameter along a curve."""
FEW_VALUES = 30
"""A parameter with at most so many values is shown as single points."""
_AT_ONCE = 256
"""Designs that are predicted at a time."""


@dataclass(frozen=True)
class Estimate:
    """Expected values, each with its standard deviation."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def __getitem__(self, i: Any) -> "Estimate":
        """Return some of the values."""
        return Estimate(np.asarray(self.mean[i]), np.asarray(self.std[i]))


class Findings:
    """The recommended design of an optimizer, and what is known of each outcome there."""

    def __init__(
        self,
        optimizer: Optimizer,
        units: Mapping[str, str | None] | None = None,
        numbers: Sequence[int] | None = None,
        given: Mapping[str, Any] | None = None,
        design: Design | None = None,
        plausible: Mapping[str, Bounds] | None = None,
    ) -> None:
        """Look at an optimizer.

        Args:
            optimizer: It is not changed.
            units: Units of the outcomes by name.
            numbers: What people call the experiments by, in the order in which they were told; by
                default they are counted from 1.
            given: What is known of the environment, by name.
            design: What to look around at; by default the recommended design.
            plausible: Between which values outcomes can lie, by name.
        """
        self.optimizer, self._design = optimizer, design
        self.space, self.outcomes = optimizer.space, optimizer.outcomes
        self.cube = Cube(self.space)
        self.deployment = optimizer.deployment
        """Where designs land in use."""
        self.given = dict(given or {})
        self.section = Section(optimizer.space, self.given)
        """The designs inside the cube that models see, which has the environment, too."""
        self.units, self.plausible = dict(units or {}), dict(plausible or {})
        n = len(optimizer.observations)
        self.numbers = list(range(1, n + 1)) if numbers is None else list(numbers)
        if len(self.numbers) != n:
            raise ValueError(f"There are {n} experiments, but {len(self.numbers)} numbers.")

    # -- what is wanted, and what was measured

    @property
    def is_single(self) -> bool:
        """Whether one outcome decides alone: no limits, and no designs that cannot be used."""
        infeasible = self.optimizer.observations[STATUS] == INFEASIBLE
        return len(self.outcomes) == 1 and not infeasible.any()

    @property
    def aims(self) -> Mapping[str, Aim]:
        """The outcomes that designs are chosen by."""
        return objectives(self.outcomes)

    @property
    def is_by_mean(self) -> bool:
        """Whether the mean of one outcome decides, so that further experiments can be valued."""
        [want, *_] = self.aims.values()
        return self.is_single and isinstance(want.measure, Mean)

    @property
    def missing(self) -> list[str]:
        """Outcomes that no experiment has measured: as long as there are any, nothing is known."""
        return [o.name for o in self.parts if not o.values.notna().any()]

    @cached_property
    def parts(self) -> "list[OutcomeFindings]":
        """What is known of each outcome."""
        return [OutcomeFindings(self, name) for name in self.outcomes]

    @cached_property
    def slices(self) -> "list[Slice]":
        """What to expect of each outcome along each parameter."""
        return [Slice(outcome, name) for outcome in self.parts for name in self.space.names]

    @property
    def unseen(self) -> list[str]:
        """What nobody sets, and nobody knows beforehand."""
        return [name for name in self.space.environment if name not in self.given]

    # -- the answer

    @cached_property
    def _answer(self) -> tuple[Recommendation, bool]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            best = self.optimizer.recommend(given=self.given)
        doubts = [w for w in caught if issubclass(w.category, TooLittleDataWarning)]
        for other in caught:
            if other not in doubts:
                warnings.warn(other.message, stacklevel=2)
        return held(self.optimizer, best, self.given), bool(doubts)

    @property
    def best(self) -> Recommendation:
        """The recommendation."""
        return self._answer[0]

    @property
    def design(self) -> Design:
        """The design that is looked at; the recommended one, unless another was given."""
        return self.best.design if self._design is None else self._design

    @property
    def is_doubtful(self) -> bool:
        """Whether too little is known to recommend a design."""
        return self._answer[1]

    @property
    def expected(self) -> Mapping[str, OutcomeEstimate]:
        """What the model predicts for each outcome of the recommended design."""
        return self.best.outcomes

    @cached_property
    def front(self) -> list[Recommendation]:
        """The designs that no other one beats by all objectives."""
        return self.optimizer.front(given=self.given)

    @cached_property
    def handover(self) -> Handover:
        """Operating window and tolerance budgets, where there are limits."""
        return Handover.of(self.optimizer, self.best.design, self.given)

    @property
    def level(self) -> float | None:
        """The probability of being in spec that is asked for; None where there are no limits."""
        window = self.handover.window
        return None if window is None else window.level

    def in_spec(self, X: Array[Tensor, "n d"]) -> NDArray[np.float64]:
        """Return the probability that all limits are kept, for designs in columns."""
        return self._specification.probability(self.cube.axes.from_columns(X)).numpy()

    @cached_property
    def _specification(self) -> Specification:
        return Specification.of(self.optimizer, given=self.given)

    # -- where designs land

    @property
    def uncertain(self) -> list[str]:
        """Names of the parameters that are not hit exactly in use."""
        columns = self.deployment.uncertain_columns(self.space.whole.d)
        return [self.space.names[column] for column in columns if column < self.space.d]

    @cached_property
    def center(self) -> Array[Tensor, "1 d"]:
        """The recommended design as columns."""
        return self.cube.columns(self.design, allow_outside=True)

    @cached_property
    def executed(self) -> Array[Tensor, "s d"]:
        """Draws of where the recommended design lands in use, as columns."""
        draws = base_draws(N_DRAWS, self.deployment.n_base(self.space.whole.d))
        center = self.section.columns([self.design], allow_outside=True)
        return self.deployment.perturb(center, draws)[0, :, : self.space.d]

    def executed_interval(self, name: str) -> tuple[float, float]:
        """Return where a parameter lands in 95 of 100 cases, at the recommended design."""
        column = self.executed[:, self.space.names.index(name)].numpy()
        low, high = np.quantile(column, [0.025, 0.975])
        return float(low), float(high)

    # -- parameters in words

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name, or say which there are."""
        whole = self.space.whole
        if name not in whole.names:
            raise ValueError(f"Unknown parameter {name!r}{whole.hint(name)}")
        return whole.parameters[name]

    def shown(self, name: str, value: Any) -> str:
        """Write the value of a parameter in the digits that the machine can hold, and its unit."""
        return words.with_unit(self.bare(name, value), words.unit_of(self.parameter(name)))

    def bare(self, name: str, value: Any) -> str:
        """Write the same without the unit."""
        if name not in self._digits:
            return words.bare(self.parameter(name), value)
        places = self._digits[name](value)
        return words.fixed(round(value, places), places)

    @cached_property
    def _digits(self) -> dict[str, Places]:
        return digits_of(self.space, self.optimizer.uncertainty)

    # -- designs along parameters

    def grid(self, name: str, n: int) -> NDArray[np.float64]:
        """Return values of a parameter as numbers, about ``n`` if it is a number."""
        whole, cube = self.space.whole, self.section.whole
        column, parameter = whole.names.index(name), self.parameter(name)
        n_values = whole.n_values.get(column)
        if n_values is not None and (n_values <= n or column in whole.categorical_columns):
            positions = np.array(cube.values(column))
        else:
            positions = np.linspace(0, 1, n)
        values = self.values_at(name, positions, rounded=True).tolist()
        return np.unique([parameter.encode(parameter.decode(value)) for value in values])

    def values_at(
        self, name: str, positions: NDArray[np.float64], rounded: bool = False
    ) -> NDArray[np.float64]:
        """Return the values of a parameter at positions between 0 and 1 of its range."""
        cube = self.section.whole
        column = cube.space.names.index(name)
        F = torch.zeros(len(positions), cube.space.d, dtype=torch.float64)
        F[:, column] = torch.from_numpy(positions)
        return cube.axes.to_columns(cube.round(F) if rounded else F)[:, column].numpy()

    def positions_of(self, name: str, X: Array[Tensor, "n d"]) -> NDArray[np.float64]:
        """Return where designs stand in the range of a parameter, from 0 to 1."""
        return self.cube.axes.from_columns(X)[:, self.space.names.index(name)].numpy()

    def positions(self, name: str, values: Sequence[float]) -> list[float]:
        """Return where the design stands in a range, also of the environment, then some values."""
        column = self.space.whole.names.index(name)
        X = self.section.columns([self.design], True).repeat(1 + len(values), 1)
        X[1:, column] = torch.tensor(values, dtype=torch.float64)
        found: list[float] = self.section.whole.axes.from_columns(X)[:, column].tolist()
        return found

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
        return self.findings.optimizer.outcome_model(self.name, given=self.findings.given)

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
        return self.expected(self.findings.center)[0]

    def expected(self, X: Array[Tensor, "n d"], exactly: bool = False) -> Estimate:
        """Return the expected value of designs in columns.

        Args:
            X: The designs.
            exactly: Whether they are hit exactly, and not as in use; see ``knows_exact``.
        """
        under = {}
        if exactly:
            exact = self.findings.deployment.scaled(0)
            under = {"uncertainty": in_cube(self.findings.space.whole, exact)}
        section, model = self.findings.section, cast(Any, self.model.model)
        around = section.columns([self.findings.design], True)[:, section.designs.d :]
        Z = section.whole.from_columns(torch.cat([X, around.expand(len(X), -1)], dim=-1))
        with torch.no_grad():  # each design by itself: (n, 1, m)
            parts = [model.posterior(part, **under) for part in Z.unsqueeze(-2).split(_AT_ONCE)]
            mean = torch.cat([part.mean.flatten() for part in parts]).numpy()
            variance = torch.cat([part.variance.flatten() for part in parts]).clamp_min(0).numpy()
        return Estimate(self.value_factor * mean, abs(self.value_factor) * np.sqrt(variance))

    @property
    def value_factor(self) -> float:
        """Factor from values of the model to the user's; negative if smaller is better."""
        return self.model.surrogate.sign * self.model.unit

    @property
    def knows_exact(self) -> bool:
        """Whether the model can predict designs that the machine hits exactly.

        Its kernel has to be linear in P, so that it can compose one expectation from others.
        """
        return isinstance(self.model.model, UGP | ERBFGP)

    @property
    def in_use(self) -> Array[Tensor, "S s"]:
        """Draws of the values at the recommended design, over where it lands.

        The model does not know what is impossible: such values stand at the end of what is not.
        """
        low, high = self.findings.plausible.get(self.name, (None, None))
        values = self.model.values(self.findings.best.design)
        return values.clamp(-math.inf if low is None else low, math.inf if high is None else high)

    @cached_property
    def outlook(self) -> Outlook:
        """What further experiments can bring, and what the recommendation is based on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)  # ``is_doubtful`` says it
            one, given = self.findings.optimizer, self.findings.given
            return look_ahead(one, given=given, outcome=self.name)

    @property
    def capability(self) -> Capability | None:
        """How well the recommended design keeps the limits; None where there are none."""
        return self.findings.expected[self.name].capability

    @property
    def limits(self) -> list[float]:
        """The limits of its values."""
        return [limit for limit in self.want.bounds if limit is not None]

    def is_in_spec(self, value: float) -> bool:
        """Whether a value is within its limits; also where there are none."""
        low, high = self.want.bounds
        return (low is None or value >= low) and (high is None or value <= high)


class Slice:
    """What to expect along one parameter, the others being as recommended."""

    def __init__(self, outcome: OutcomeFindings, name: str) -> None:
        """Look along a parameter.

        Args:
            outcome: Whose values.
            name: Of the parameter.
        """
        self.outcome, self.findings, self.name = outcome, outcome.findings, name
        self.parameter = self.findings.parameter(name)
        self.column = self.findings.space.names.index(name)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values of the parameter, as numbers."""
        own = self.findings.grid(self.name, N_ALONG)
        return np.union1d(own, self.findings.center[:, self.column].numpy())

    @cached_property
    def expected(self) -> Estimate:
        """The expected value in use, by the model of the optimizer."""
        return self.outcome.expected(self.findings.along({self.name: self.values}))

    @cached_property
    def nominal(self) -> Estimate | None:
        """The value if the design were hit exactly; None if it is, or if the model cannot say."""
        if not self.findings.uncertain or not self.outcome.knows_exact:
            return None
        return self.outcome.expected(self.findings.along({self.name: self.values}), exactly=True)

    @property
    def influence(self) -> float:
        """How much the expected value changes along the parameter."""
        return float(np.ptp(self.expected.mean))

    def shown(self, numbers: NDArray[np.float64]) -> list[float | str]:
        """Return values as a chart takes them."""
        if not isinstance(self.parameter, Categorical):
            return numbers.tolist()
        return [escape(str(self.parameter.decode(x))) for x in numbers]

    def hover(self, estimate: Estimate, name: str) -> NDArray[np.str_]:
        """Say what each value is, where a pointer rests on it."""
        written = [words.value(self.parameter, self.parameter.decode(x)) for x in self.values]
        said = (f"{v}: {words.plus_minus(estimate[i])}, {name}" for i, v in enumerate(written))
        return np.array(list(said))
