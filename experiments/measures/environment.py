"""What nobody sets: reliability over an environment, the best design of today, known noise.

Three questions, each an experiment:

- *reliability*: does the recommended design keep its limits truly, and what does it cost more than
  the best one? Cantilever and short column as in Dakota, and the example of otrobopt.
- *context*: how good is the recommended design of each of nine contexts, beside BoTorch's
  ``SingleTaskGP`` with the context as a column, and beside a model that ignores it?
- *known-noise*: what is it worth to say how noisy each value is, where noise differs tenfold?
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from botorch.test_functions.synthetic import Branin, Hartmann
from jaxtyping import Float
from torch import Tensor

import airbo
from airbo import uncertainty as unc
from airbo.optimizer import Design
from airbo.seeds import reproducible, stream, stream_seed
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.subjects.methods import fit

# -- reliability

N_TRUE = 10**6
"""Environments behind a true probability."""
TOLERATED = 0.1
"""A limit counts as kept if it is missed at most a tenth more often than allowed."""
SEEN = ("seen", "unseen")
"""Whether experiments measure the environment."""


@dataclass(frozen=True)
class Structure:
    """A cost to minimize and margins that must be positive with a probability."""

    name: str
    designs: dict[str, Any]
    environment: dict[str, airbo.Environment]
    uncertainty: dict[Any, unc.InputUncertainty]
    """Laws of environments that vary together."""
    measured: Callable[[Any], tuple[Any, ...]]
    """Cost and margins, of values by name."""
    level: float
    best: float
    """The cost of the cheapest design that keeps all limits."""

    @property
    def space(self) -> airbo.Space:
        return airbo.Space({**self.designs, **self.environment})

    def drawn(self, n: int, seed: int, i: int = 0) -> dict[str, np.ndarray]:
        """Draw environments; those of experiment i are the same for every method."""
        laws: dict[Any, unc.InputUncertainty] = {
            name: e.law for name, e in self.environment.items() if e.law is not None
        }
        found: dict[str, np.ndarray] = {}
        for names, law in {**laws, **self.uncertainty}.items():
            own = (names,) if isinstance(names, str) else names
            chance = stream(seed, f"environment of {self.name}, {own}", i)
            base = torch.from_numpy(chance.random((n, law.n_base(len(own)))))
            typical = torch.tensor(
                [[self.environment[name].typical for name in own]], dtype=torch.float64
            )
            values = law.perturb(typical, base.clamp(1e-12, 1 - 1e-12))[0].numpy()
            found |= dict(zip(own, values.T, strict=True))
        # an instrument ends where its range ends: less than one draw in 10⁸
        ends = {name: (e.low, e.high) for name, e in self.environment.items()}
        return {name: np.clip(v, *ends[name]) for name, v in found.items()}

    def judge(self, design: Design) -> tuple[float, float]:
        """Return the expected cost, and how much more often than allowed the worst limit fails."""
        cost, *margins = self.measured({**design, **self.drawn(N_TRUE, seed=2**31 - 1)})
        missed = max(float(np.mean(np.asarray(m) < 0)) for m in margins)
        return float(np.mean(cost)), missed / (1 - self.level)


def _cantilever(v: Any) -> tuple[Any, ...]:
    w, t, R, E, X, Y = (v[name] for name in ("w", "t", "R", "E", "X", "Y"))
    stress = 600 * Y / (w * t**2) + 600 * X / (w**2 * t)
    sag = 4 * 100**3 / (E * w * t) * np.sqrt((Y / t**2) ** 2 + (X / w**2) ** 2)
    # logarithms of safety factors: stress and sag span two orders of magnitude over the box
    return w * t, np.log(R / stress), np.log(2.2535 / sag)


def _short_column(v: Any) -> tuple[Any, ...]:
    b, h, P, M, Y = (v[name] for name in ("b", "h", "P", "M", "Y"))
    # 1 - load >= 0, as a logarithm
    load = 4 * M / (b * h**2 * Y) + P**2 / (b * h * Y) ** 2
    return b * h, -np.log(load)


def _quadratic(v: Any) -> tuple[Any, ...]:
    x0, x1, theta = (v[name] for name in ("x0", "x1", "theta"))
    return (x0 - 2) ** 2 + 2 * x1**2 - 4 * x1 + theta, 3 - (-x0 + 4 * x1 + theta)


def _normal(mean: float, std: float, law: bool = True) -> airbo.Environment:
    ends = (mean - 6 * std, mean + 6 * std)
    return airbo.Environment(*ends, typical=mean, law=unc.Normal(std) if law else None)


def _side(low: float, high: float) -> airbo.Float:
    return airbo.Float(low, high, log=True)


_SIGMA = math.sqrt(math.log(1 + 0.5**2 / 5**2))
"""Y is log-normal with mean 5 and standard deviation 0.5."""
STRUCTURES = {
    s.name: s
    for s in (
        Structure(
            "cantilever",
            {"w": _side(1.0, 4.0), "t": _side(1.0, 4.0)},
            {
                "R": _normal(40000.0, 2000.0),
                "E": _normal(2.9e7, 1.45e6),
                "X": _normal(500.0, 100.0),
                "Y": _normal(1000.0, 100.0),
            },
            {},
            _cantilever,
            level=0.99865,
            best=9.519,
        ),
        Structure(
            "short column",
            {"b": _side(5.0, 15.0), "h": _side(15.0, 25.0)},
            {
                "P": _normal(500.0, 100.0, law=False),
                "M": _normal(2000.0, 400.0, law=False),
                "Y": airbo.Environment(2.5, 10.0, 5 / math.sqrt(1.01), law=unc.LogNormal(_SIGMA)),
            },
            {("P", "M"): unc.Joint([unc.Normal(100.0), unc.Normal(400.0)], [[1, 0.5], [0.5, 1]])},
            _short_column,
            level=1 - 0.00621,
            best=216.24,
        ),
        Structure(
            "otrobopt",
            {"x0": (0.0, 4.0), "x1": (-1.0, 3.0)},
            {"theta": airbo.Environment(1.0, 3.0, typical=2.0, law=unc.Uniform(-1.0, 1.0))},
            {},
            _quadratic,
            level=0.9,
            best=0.36,
        ),
    )
}


class Reliability(Experiment):
    """airbo on three structures, where experiments measure the environment or not."""

    name = "reliability"
    paper = "beyond the paper"
    title = "Designs that keep their limits over an environment"
    repeats = 10
    n_steps = 60

    def tasks(self, repeats: int) -> list[Task]:
        """List all structures, the repeats one after another."""
        n = self.n_steps
        return [
            Task(self.name, f"{name}, {seen}", seed, {"of": name, "seen": seen, "n_steps": n})
            for seed in range(repeats)
            for name in STRUCTURES
            for seen in SEEN
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once; judge the recommended design by the truth."""
        config, seed = task.config, task.seed
        structure = STRUCTURES[config["of"]]
        margins = [f"margin{k}" for k in range(2 if config["of"] == "cantilever" else 1)]
        limits = {name: airbo.AtLeast(0.0, probability=structure.level) for name in margins}
        optimizer = airbo.Optimizer(
            structure.space,
            structure.uncertainty,
            outcomes={"cost": airbo.Minimize(), **limits},
            seed=stream_seed(seed, "optimizer"),
        )
        for i in range(config["n_steps"]):
            design = optimizer.ask()
            today = {name: float(v[0]) for name, v in structure.drawn(1, seed, i).items()}
            row = map(float, structure.measured({**design, **today}))
            values = dict(zip(["cost", *margins], row, strict=True))
            executed = today if config["seen"] == "seen" else None
            optimizer.tell(design, values, executed=executed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = optimizer.recommend("anywhere").design
        cost, missed = structure.judge(found)
        return {
            "recommended": {name: float(f"{x:.6g}") for name, x in found.items()},
            "more": round(cost / structure.best - 1, 5),
            "missed": round(missed, 4),
        }

    def summary(self, results: Results) -> str:
        """Tabulate how many recommended designs keep all limits, and what they cost more."""
        rows = []
        for name, seen in product(STRUCTURES, SEEN):
            each = results.of(f"{name}, {seen}")
            kept = [r["more"] for r in each if r["missed"] <= 1 + TOLERATED]
            row = [f"{name}, {seen}", f"{len(kept)} of {len(each)}"]
            row += [f"{100 * np.median(kept):+.1f}% ({100 * max(kept):+.1f}%)" if kept else "–"]
            rows.append([*row, f"{np.median([r['missed'] for r in each]):.2f}" if each else "–"])
        header = [
            "environment",
            "keep all limits",
            "cost more, median (most)",
            "misses / allowed misses, median",
        ]
        return (
            f"After {self.n_steps} experiments, by {N_TRUE:,} draws of the environment. Designs "
            "that were not tried may be recommended. A design "
            f"keeps its limits if it misses at most {TOLERATED:.0%} more often than allowed.\n\n"
            f"{table.markdown(header, rows)}"
        )


# -- context

N_CONTEXTS, N_FIRST = 9, 10
N_GRID, N_NODES = 81, 15


@dataclass(frozen=True)
class Contextual:
    """A function of a design, which lands with an error, and of a context between 0 and 1."""

    name: str
    f: Callable[[Tensor, Tensor], Tensor]
    """Values at executed inputs in the unit cube (..., d) and contexts (...)."""
    d: int
    error: float
    noise: float

    def observed(self, design: Sequence[float], context: float, seed: int, i: int) -> float:
        """Return the value of experiment i: the same error and noise for every method."""
        chance = stream(seed, f"experiments of {self.name}", i).standard_normal(self.d + 1)
        x = torch.tensor(design, dtype=torch.float64) + self.error * torch.from_numpy(chance[1:])
        return self.f(x, torch.tensor(context, dtype=torch.float64)).item() + self.noise * float(
            chance[0]
        )

    def expected(self, X: Float[Tensor, "n d"], context: float) -> Float[Tensor, " n"]:
        """Return E f(x + δ, c) by Gauss-Hermite quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
        grid = torch.tensor(list(product(nodes, repeat=self.d)))
        w = torch.tensor(list(product(weights / weights.sum(), repeat=self.d))).prod(-1)
        landed = X.unsqueeze(-2) + self.error * grid  # (n, nodes, d)
        return self.f(landed, torch.tensor(context, dtype=torch.float64)) @ w

    @cached_property
    def truth(self) -> dict[float, tuple[float, float]]:
        """The best and the average expected value, by context."""
        line = torch.linspace(0, 1, N_GRID, dtype=torch.float64)
        X = torch.cartesian_prod(*[line] * self.d).reshape(-1, self.d)
        values = {c: self.expected(X, c) for c in contexts()}
        return {c: (v.max().item(), v.mean().item()) for c, v in values.items()}

    def regret(self, designs: dict[float, Sequence[float]]) -> float:
        """Return what the designs of all contexts lose, as a share of the achievable gain."""
        lost = []
        for c, design in designs.items():
            best, average = self.truth[c]
            value = self.expected(torch.tensor([design], dtype=torch.float64), c).item()
            lost.append((best - value) / (best - average))
        return float(np.mean(lost))


def contexts() -> list[float]:
    return [(i + 0.5) / N_CONTEXTS for i in range(N_CONTEXTS)]


def _ridge(x: Tensor, c: Tensor) -> Tensor:
    # the best setting rises with the context, and a second, lower hill stays where it is
    x = x[..., 0]
    ridge = torch.exp(-(((x - 0.2 - 0.6 * c) / 0.15) ** 2))
    return ridge + 0.6 * torch.exp(-(((x - 0.8) / 0.05) ** 2))


def _branin(x: Tensor, c: Tensor) -> Tensor:
    x1, x2 = 15 * x[..., 0] - 5, 15 * c.expand(x.shape[:-1])
    return -Branin(bounds=[(-99.0, 99.0)] * 2)(torch.stack([x1, x2], dim=-1)) / 50


def _hartmann(x: Tensor, c: Tensor) -> Tensor:
    point = torch.cat([x, c.expand(x.shape[:-1]).unsqueeze(-1)], dim=-1)
    return -Hartmann(dim=3, bounds=[(-9.0, 9.0)] * 3)(point.reshape(-1, 3)).reshape(x.shape[:-1])


CONTEXTUAL = {
    p.name: p
    for p in (
        Contextual("ridge", _ridge, 1, error=0.03, noise=0.05),
        Contextual("branin", _branin, 1, error=0.03, noise=0.05),
        Contextual("hartmann", _hartmann, 2, error=0.05, noise=0.05),
    )
}


class AirboContext:
    """``airbo.Optimizer`` with an environment that is given."""

    def __init__(self, problem: Contextual, seed: int) -> None:
        """Start without observations."""
        names = [f"x{i}" for i in range(problem.d)]
        law = unc.Uniform(-0.5, 0.5)
        space = {name: (0.0, 1.0) for name in names}
        self.optimizer = airbo.Optimizer(
            airbo.Space({**space, "c": airbo.Environment(0.0, 1.0, typical=0.5, law=law)}),
            {name: unc.Normal(problem.error) for name in names},
            n_initial=1,
            seed=stream_seed(seed, "optimizer"),
        )

    def ask(self, context: float) -> list[float]:
        return list(self.optimizer.ask(given={"c": context}).values())

    def tell(self, design: Sequence[float], context: float, value: float) -> None:
        named = dict(zip(self.optimizer.space.names, design, strict=True))
        self.optimizer.tell(named, value, executed={"c": context})

    def recommend(self, context: float) -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(self.optimizer.recommend(given={"c": context}).design.values())


class BoTorchContext:
    """``SingleTaskGP`` and qLogNEI, with the context as a column that is held, or without it."""

    knows_context = True

    def __init__(self, problem: Contextual, seed: int) -> None:
        """Start without observations."""
        self.d, self.seed = problem.d, stream_seed(seed, "optimizer")
        self.rows: list[list[float]] = []
        self.values: list[float] = []
        self.model: SingleTaskGP | None = None

    def tell(self, design: Sequence[float], context: float, value: float) -> None:
        self.rows.append([*design, context] if self.knows_context else [*design])
        self.values.append(value)
        self.model = None

    def ask(self, context: float) -> list[float]:
        with reproducible(self.seed, "ask", len(self.rows)):
            X = torch.tensor(self.rows, dtype=torch.float64)
            better = qLogNoisyExpectedImprovement(self._fitted(), X, prune_baseline=True)
            return self._best(better, context)

    def recommend(self, context: float) -> list[float]:
        with reproducible(self.seed, "recommend"):
            return self._best(PosteriorMean(self._fitted()), context)

    def _best(self, function: Any, context: float) -> list[float]:
        m = self.d + self.knows_context
        cube = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, m)
        held = {self.d: context} if self.knows_context else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, _ = optimize_acqf(
                function, cube, 1, num_restarts=6, raw_samples=128, fixed_features=held
            )
        design: list[float] = x.detach()[0, : self.d].tolist()
        return design

    def _fitted(self) -> SingleTaskGP:
        if self.model is None:
            X = torch.tensor(self.rows, dtype=torch.float64)
            Y = torch.tensor(self.values, dtype=torch.float64).unsqueeze(-1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.model = fit(SingleTaskGP(X, Y))
        return self.model


class Ignoring(BoTorchContext):
    """The same without the column."""

    knows_context = False


CONTEXT_METHODS: dict[str, Any] = {
    "airbo": AirboContext,
    "BoTorch": BoTorchContext,
    "BoTorch, ignoring the context": Ignoring,
}


class Compared(Experiment):
    """Several ways on the three functions: what the recommended designs lose."""

    paper = "beyond the paper"
    repeats = 10
    n_steps: int
    key: str
    """The name of the ways in configurations."""
    ways: ClassVar[Mapping[str, str]]
    """What tables call them, by name."""
    when: str

    def tasks(self, repeats: int) -> list[Task]:
        """List all ways on all functions, the repeats one after another."""
        n = self.n_steps
        return [
            Task(self.name, f"{p}: {way}", seed, {"of": p, self.key: way, "n_steps": n})
            for seed in range(repeats)
            for p in CONTEXTUAL
            for way in self.ways
        ]

    def summary(self, results: Results) -> str:
        """Tabulate what recommended designs lose."""
        rows = [[p, *(_lost(results.of(f"{p}: {way}")) for way in self.ways)] for p in CONTEXTUAL]
        return (
            f"What {self.when}, as a share of the achievable gain: mean, and standard error over "
            f"the repeats.\n\n{table.markdown(['function', *self.ways.values()], rows)}"
        )


def _lost(results: list[dict[str, Any]]) -> str:
    if not results:
        return "–"
    values = np.array([r["regret"] for r in results])
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.3f} ± {error:.3f} ({len(values)})"


class Context(Compared):
    """Three methods, under a random context for every experiment."""

    name = "context"
    title = "The best design of today"
    n_steps = 60
    key = "method"
    ways: ClassVar = {method: method for method in CONTEXT_METHODS}
    when = (
        f"the recommended designs of {N_CONTEXTS} contexts lose after {n_steps} experiments under "
        "random contexts"
    )

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize once; judge the recommended design of every context by the truth."""
        problem, seed = CONTEXTUAL[task.config["of"]], task.seed
        loop = CONTEXT_METHODS[task.config["method"]](problem, seed)
        for i in range(task.config["n_steps"]):
            chance = stream(seed, f"days of {problem.name}", i).random(1 + problem.d)
            context = float(chance[0])
            design = chance[1:].tolist() if i < N_FIRST else loop.ask(context)
            loop.tell(design, context, problem.observed(design, context, seed, i))
        regret = problem.regret({c: loop.recommend(c) for c in contexts()})
        return {"regret": round(regret, 6)}


# -- known noise

SMALL, LARGE = 0.05, 0.5


class KnownNoise(Compared):
    """airbo that is told the noise of every value, and airbo that learns one for all."""

    name = "known-noise"
    title = "Noise that is known for each value"
    n_steps = 40
    key = "noise"
    ways: ClassVar = {"known": "noise known", "learned": "noise learned"}
    when = (
        f"the recommended design loses after {n_steps} experiments, half of them with a noise of "
        f"{SMALL:g} and half with {LARGE:g}"
    )

    def run(self, task: Task) -> dict[str, Any]:
        """Optimize in one context, with a good and a bad instrument in turn, by chance."""
        problem, seed, context = CONTEXTUAL[task.config["of"]], task.seed, contexts()[4]
        names = [f"x{i}" for i in range(problem.d)]
        optimizer = airbo.Optimizer(
            {name: (0.0, 1.0) for name in names},
            unc.Normal(problem.error),
            n_initial=N_FIRST,
            seed=stream_seed(seed, "optimizer"),
        )
        for i in range(task.config["n_steps"]):
            design = optimizer.ask()
            chance = stream(seed, f"instruments of {problem.name}", i)
            noise = (SMALL, LARGE)[chance.integers(2)]
            value = problem.observed(list(design.values()), context, seed, i)
            value += noise * float(chance.standard_normal())
            known = math.hypot(noise, problem.noise) if task.config["noise"] == "known" else None
            optimizer.tell(design, value, noise=known)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list(optimizer.recommend().design.values())
        return {"regret": round(problem.regret({context: found}), 6)}


RELIABILITY, CONTEXT, KNOWN_NOISE = Reliability(), Context(), KnownNoise()
