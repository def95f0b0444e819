"""The findings of an optimizer, computed once for all charts and texts that show them."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float as Array
from numpy.typing import NDArray
from torch import Tensor

from airbo import words
from airbo.analysis import Outlook, look_ahead
from airbo.digits import Digits, digits_for
from airbo.models import ERBFGP, UGP
from airbo.observed import OK, STATUS, VALUE
from airbo.optimizer import Design, Optimizer, Recommendation, TooLittleDataWarning
from airbo.report.beliefs import Beliefs, Estimate
from airbo.space import Space
from airbo.space.cube import Cube
from airbo.space.parameters import Float, Parameter
from airbo.uncertainty import InputUncertainty, base_draws

N_DRAWS = 4096


@dataclass(frozen=True)
class Tried:
    """A design that was tried, with all its results."""

    design: Design
    expected: Estimate
    n_values: int
    n_failed: int
    observed: float
    """Mean of the observed values."""


class Findings:
    """What an optimizer has found out.

    Everything is computed when it is first needed, and only once.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        name: str = "value",
        unit: str | None = None,
        design: Design | None = None,
        is_one_of_several: bool = False,
        decided_by: Optimizer | None = None,
    ) -> None:
        """Look at an optimizer.

        Args:
            optimizer: It is not changed.
            name: What the observed values are, for people to read.
            unit: The unit of the observed values.
            design: The recommended design, where something else than the mean of these values
                decides.
            is_one_of_several: Whether the page is about other outcomes, too.
            decided_by: The optimizer that decides, where it is another one; it knows what counts.
        """
        self.optimizer = optimizer
        self.name = name
        self.unit = unit
        self._design, self.is_one_of_several = design, is_one_of_several
        self.decided_by = decided_by or optimizer

    def titled(self, title: str) -> str:
        """Return the title of a section, with the name of the outcome where there are several."""
        return f"{self.name} · {title}" if self.is_one_of_several else title

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
    def sign(self) -> int:
        """1 where larger is better, -1 where smaller is."""
        return 1 if self.optimizer.direction == "maximize" else -1

    @cached_property
    def known(self) -> NDArray[np.float64]:
        """The observed values, in order, without failed experiments."""
        table = self.optimizer.observations
        return table.loc[table[STATUS] == OK, VALUE].to_numpy(dtype=np.float64)

    # -- the answer

    @cached_property
    def _answer(self) -> tuple[Recommendation, str | None]:
        if self._design is not None:
            known = self.optimizer.evaluate(self._design)
            return Recommendation(self._design, known.mean, known.std), None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            best = self.optimizer.recommend()
        doubts = [w for w in caught if issubclass(w.category, TooLittleDataWarning)]
        for other in caught:
            if other not in doubts:
                warnings.warn(other.message, stacklevel=2)
        return best, str(doubts[0].message) if doubts else None

    @property
    def best(self) -> Recommendation:
        """The recommendation."""
        return self._answer[0]

    @property
    def doubt(self) -> str | None:
        """Why the model cannot tell yet which design is best; None if it can."""
        return self._answer[1]

    @cached_property
    def outlook(self) -> Outlook:
        """What further experiments can bring, and what the recommendation is based on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooLittleDataWarning)  # ``doubt`` says it
            return look_ahead(self.optimizer)

    @cached_property
    def center(self) -> Array[Tensor, "1 d"]:
        """The recommended design as columns."""
        return self.cube.columns(self.best.design, allow_outside=True)

    @cached_property
    def beliefs(self) -> Beliefs:
        """The model of the optimizer."""
        return Beliefs.of(self.optimizer)

    @cached_property
    def what_if(self) -> Beliefs:
        """A model of the same observations that can say what other uncertainties would do.

        Its kernel has to be linear in P, so that it can compose one expectation from others. If
        the kernel of the optimizer is not, a UGP is fitted as well.
        """
        if isinstance(self.beliefs.model, UGP | ERBFGP):
            return self.beliefs
        return Beliefs.of(self.optimizer.with_surrogate("ugp"))

    @cached_property
    def if_exact(self) -> Beliefs:
        """The same about designs that are hit exactly."""
        return self.what_if.under(self.deployment.scaled(0))

    @property
    def second_model(self) -> bool:
        """Whether other uncertainties are judged by another model than the optimizer's."""
        return self.what_if is not self.beliefs

    # -- where designs land

    @property
    def uncertain(self) -> list[str]:
        """Names of the parameters that are not hit exactly in use."""
        columns = self.deployment.uncertain_columns(self.space.d)
        return [self.space.names[column] for column in columns]

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

    def shown(self, name: str, value: Any) -> str:
        """Write the value of a parameter in the digits that the machine can hold, and its unit."""
        parameter, digits = self.parameter(name), self._digits.get(name)
        if digits is None:
            return words.value(parameter, value)
        text = words.fixed(digits.round(value), digits.places_of(value))
        return words.with_unit(text, words.unit_of(parameter))

    def bare(self, name: str, value: Any) -> str:
        """Write the same without the unit."""
        unit = words.unit_of(self.parameter(name)) or ""
        return self.shown(name, value).removesuffix(unit).rstrip()

    @cached_property
    def _digits(self) -> dict[str, Digits]:
        """Digits by name: from how far the recommended design lands from itself."""
        std = self.executed.std(dim=0).tolist()
        found = {}
        for i, (name, parameter) in enumerate(self.space.parameters.items()):
            near: Parameter = parameter
            if name in self.uncertain and isinstance(parameter, Float):
                near = replace(parameter, log=False)  # near one design, a log scale is linear
            digits = digits_for(near, std[i])
            if digits is not None:
                found[name] = digits
        return found

    def difference(self, designs: Sequence[Design]) -> Estimate:
        """Return by how much the expected value of the second of two designs differs."""
        joint = self.beliefs.joint(self.cube.columns(designs, allow_outside=True))
        mean, C = joint
        variance = C[0, 0] + C[1, 1] - 2 * C[0, 1]
        return Estimate(np.array(mean[1] - mean[0]), np.sqrt(np.clip(variance, 0, None)))

    # -- designs that were tried

    @cached_property
    def tried(self) -> list[Tried]:
        """Distinct designs inside the space that gave a value, the best first."""
        names = list(self.space.names)
        groups: dict[tuple[object, ...], list[float]] = {}
        for row in self.optimizer.observations[[*names, VALUE]].to_dict("records"):
            groups.setdefault(tuple(row[name] for name in names), []).append(row[VALUE])
        designs = [dict(zip(names, key, strict=True)) for key in groups]
        inside = self._inside(designs)
        kept = [
            (design, values)
            for design, values, is_in in zip(designs, groups.values(), inside, strict=True)
            if is_in and not all(map(math.isnan, values))
        ]
        if not kept:
            return []
        X = self.cube.columns([design for design, _ in kept])
        expected = self.beliefs.expected(X)
        rows = [
            Tried(
                design,
                expected[i],
                n_values=sum(not math.isnan(v) for v in values),
                n_failed=sum(map(math.isnan, values)),
                observed=float(np.nanmean(values)),
            )
            for i, (design, values) in enumerate(kept)
        ]
        return sorted(rows, key=lambda row: -self.sign * float(row.expected.mean))

    def _inside(self, designs: list[Design]) -> list[bool]:
        F = self.cube.fold(self.cube.from_designs(designs, allow_outside=True))
        inside: list[bool] = (F.sub(0.5).abs().amax(-1) <= 0.5 + 1e-9).tolist()
        return [is_in and self.space.meets(d) for d, is_in in zip(designs, inside, strict=True)]

    def allowed(self, X: Array[Tensor, "n d"]) -> Array[Tensor, "k d"]:
        """Return those of some designs that meet all constraints, after solving equalities."""
        if not self.space.constraints:
            return X
        rows = self.space.polytope.solved(X.numpy())
        return torch.from_numpy(rows[self.space.polytope.holds(rows)])

    @cached_property
    def n_outside(self) -> int:
        """Number of experiments outside the space."""
        table = self.optimizer.observations[list(self.space.names)]
        return self._inside(table.to_dict("records")).count(False)  # type: ignore[arg-type]

    # -- along parameters

    def grid(self, name: str, n: int) -> NDArray[np.float64]:
        """Return values of a parameter as numbers, about ``n`` if it is a number."""
        column = self.space.names.index(name)
        parameter = self.space.parameters[name]
        n_values = self.space.n_values.get(column)
        if n_values is not None and (n_values <= n or column in self.space.categorical_columns):
            positions = np.array(self.cube.values(column))
        else:
            positions = np.linspace(0, 1, n)
        F = torch.zeros(len(positions), self.space.d, dtype=torch.float64)
        F[:, column] = torch.from_numpy(positions)
        values = self.cube.axes.to_columns(self.cube.round(F))[:, column].tolist()
        return np.unique([parameter.encode(parameter.decode(value)) for value in values])

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
        return integer or self.space.n_values.get(column, math.inf) <= 30

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name, or say which there are."""
        if name not in self.space.names:
            raise ValueError(f"Unknown parameter {name!r}{self.space.hint(name)}")
        return self.space.parameters[name]
