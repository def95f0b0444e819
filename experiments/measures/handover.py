"""Are the numbers true that a campaign hands over: share in spec, Cpk, scatter and window?

Eight jobs with a specification, whose truth is known. After 40 experiments a method recommends a
design; its true share in spec says how well it searched. airbo also says how large share, Cpk and
scatter are, with 90% intervals, and how far the settings may move together.
"""

import math
import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective
from botorch.acquisition.risk_measures import RiskMeasureMCObjective
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from airbo import problems
from airbo.analysis import operating_window, tolerance_budget
from airbo.measures import InSpec
from airbo.problems import Problem
from airbo.seeds import reproducible
from airbo.uncertainty import Normal, Product, Relative, Uniform, base_draws
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.statistics import with_interval
from experiments.subjects.cases import Case, Design
from experiments.subjects.internals import Capability
from experiments.subjects.landscapes import Formula
from experiments.subjects.loops import AirboLoop, BoTorchLoop, PerturbedLoop
from experiments.subjects.tolerances import toleranced

N_EXPERIMENTS = 40
N_TRUE = 2**15
"""Executed inputs behind a true share."""
BETA, N_SAMPLES = 2.0, 64
"""Of the upper confidence bound of rivals: how far up it looks, and draws of the posterior."""
MARGIN = 0.02
"""The window is asked for at this much below the lower end of the interval of the share."""
SOFT = 0.05
"""Width of the soft limits of rivals, relative to the scatter of values, as in airbo's searches."""


def roughness(X: Tensor) -> Tensor:
    """Return the roughness of a milled part, in µm: feed decides, some speeds chatter."""
    speed, feed, depth = X.unbind(-1)
    chatter = 0.5 * torch.exp(-(((speed - 90) / 18) ** 2)) + 0.17 * depth * torch.sin(speed / 14)
    return 0.4 + 12 * feed.clamp_min(0) ** 1.6 + 0.75 * depth * feed + chatter


MILLING = Formula(
    "milling",
    roughness,
    ((50.0, 200.0), (0.05, 0.4), (0.2, 2.0)),
    uncertainty=Product([Normal(4.0), Relative(Normal(0.03)), Uniform(-0.05, 0.05)]),
)


JOBS: dict[str, tuple[Problem, InSpec]] = {
    problem.name: (problem, spec)
    for problem, spec in (
        (MILLING, InSpec(1.4, 1.6)),
        (toleranced("circuit", direction="maximize"), InSpec(4.6, 5.4)),
        (toleranced("spring", direction="maximize"), InSpec(8.0, 12.0)),
        (toleranced("cantilever", direction="maximize"), InSpec(1.7, 2.3)),
        (toleranced("controller", direction="maximize"), InSpec(2.5, 3.5)),
        (toleranced("reactor", direction="maximize"), InSpec(low=80.0)),
        (problems.Branin(), InSpec(high=20.0)),
        (problems.Hills(), InSpec(low=0.5)),
    )
}
TWO_SIDED = ("milling", "circuit", "spring", "cantilever")
"""Jobs that rivals try as well."""
RIVAL_REPEATS = 10
"""Repeats of rivals: 40 runs over four jobs. Intervals are counted over all of airbo's."""
AIRBO, PERTURBED, PLAIN = "airbo", "BoTorch InputPerturbation", "plain GP"


class SpecLoop(BoTorchLoop):
    """A plain GP on the designs that searches and decides by the share in spec.

    It takes the scatter of values for noise: share = Φ((high - m) / σ) - Φ((low - m) / σ).
    """

    n_draws = 256
    """Of the posterior, to recommend by."""

    def __init__(self, case: Case, repeat: int, spec: InSpec) -> None:
        """Start without observations."""
        super().__init__(case, repeat)
        self.spec = spec

    def _objective(self) -> Any:
        """Return shares in spec where the model has these values."""
        model: Any = self._fitted()
        noise = (model.likelihood.noise.mean().sqrt() * model.outcome_transform.stdvs).squeeze()

        def share(Y: Tensor, X: Tensor | None = None) -> Tensor:
            return share_within(self.spec, self.case.sign * Y[..., 0], noise)

        return GenericMCObjective(share)

    def _acquisition(self) -> Any:
        what: dict[str, Any] = {"prune_baseline": True, "cache_root": False}
        return qLogNoisyExpectedImprovement(
            self._fitted(), self._tried(), objective=self._objective(), **what
        )

    def _tried(self) -> Tensor:
        return self._to_cube(self.designs)

    def recommend(self) -> Design:
        """Return the design tried with the largest expected share."""
        with reproducible(self.seed, "recommend"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self._fitted()
            with torch.no_grad():
                Y = model.posterior(self._tried()).rsample(torch.Size([self.n_draws]))
                return self.designs[int(self._objective()(Y).mean(0).argmax())]


class _InSpec(RiskMeasureMCObjective):
    """BoTorch has no share in spec: the mean over perturbations of soft limits."""

    def __init__(self, spec: InSpec, sign: int, sigma: Tensor, n_w: int) -> None:
        super().__init__(n_w=n_w)
        self.what = (spec, sign, sigma)

    def forward(self, samples: Tensor, X: Tensor | None = None) -> Tensor:
        spec, sign, sigma = self.what
        return share_within(spec, sign * self._prepare_samples(samples), sigma).mean(-1)


class PerturbedSpecLoop(SpecLoop, PerturbedLoop):
    """``InputPerturbation`` and the upper confidence bound of the share in spec."""

    n_draws = N_SAMPLES

    def _objective(self) -> Any:
        sigma = SOFT * torch.tensor(self.values).double().std()
        return _InSpec(self.spec, self.case.sign, sigma, self.n_perturbations)

    def _acquisition(self) -> Any:
        sampler = SobolQMCNormalSampler(torch.Size([N_SAMPLES]), seed=0)
        return qUpperConfidenceBound(
            self._fitted(), BETA**2, sampler=sampler, objective=self._objective()
        )

    def _tried(self) -> Tensor:
        return super()._tried().unsqueeze(-2)


def share_within(spec: InSpec, values: Tensor, sigma: Tensor) -> Tensor:
    """Return how much of a normal distribution around each value lies within limits."""
    sides = [torch.special.ndtr(sign * (values - limit) / sigma) for sign, limit in spec.sides]
    return (1 - sum(1 - side for side in sides)).clamp(0, 1)


METHODS: dict[str, Any] = {
    AIRBO: lambda case, repeat, spec: AirboLoop(case, repeat, measure=spec),
    PERTURBED: PerturbedSpecLoop,
    PLAIN: SpecLoop,
}


@dataclass(frozen=True)
class Handover(Experiment):
    """Search in spec, then say what to expect, job by job."""

    name: str = "handover"
    paper: str = "beyond the paper"
    title: str = "In spec: what is found, and whether the numbers that go with it are true"
    repeats: int = 20

    def tasks(self, repeats: int) -> list[Task]:
        """List airbo on all jobs, and rivals on those with two limits."""
        n = N_EXPERIMENTS
        return [
            Task(self.name, f"{job}: {method}", seed, {"job": job, "method": method, "n": n})
            for seed in range(repeats)
            for job in JOBS
            for method in (METHODS if job in TWO_SIDED and seed < RIVAL_REPEATS else (AIRBO,))
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Search once; compare what is said of the recommended design with the truth."""
        (problem, spec), config = JOBS[task.config["job"]], task.config
        case = Case(f"{problem.name}, in spec", "in spec", problem)
        loop = METHODS[config["method"]](case, task.seed, spec)
        first = case.first_designs(task.seed)
        for i in range(config["n"]):
            design = first[i] if i < len(first) else loop.ask()
            landed = case.executed(design, task.seed, i)
            loop.tell(design, case.value(landed, task.seed, i))
        design = loop.recommend()
        truth = Capability.of(spec, values_at(problem, design).expand(2, -1))
        found: dict[str, Any] = {
            "recommended": [float(f"{x:.5g}") for x in design],
            "share": round(truth.share, 5),
            "cpk": round(truth.cpk, 4),
            "scatter": values_at(problem, design).std().item(),
        }
        if isinstance(loop, AirboLoop):
            found |= self._said(loop, problem, spec, design)
        return found

    @staticmethod
    def _said(loop: AirboLoop, problem: Problem, spec: InSpec, design: Design) -> dict[str, Any]:
        """Return what airbo says of the design, and the truth at the corners of its window."""
        named = dict(zip(loop.optimizer.space.names, design, strict=True))
        said = loop.optimizer.evaluate(named, spec).capability
        assert said is not None
        scatter = tolerance_budget(loop.optimizer, named).scatter
        level = math.floor(100 * (said.share_interval[0] - MARGIN)) / 100
        window = operating_window(loop.optimizer, max(level, 0.01), named).jointly
        corners = [list(c) for c in product(*window.values())] if window else []
        shares = [spec.of(values_at(problem, c)).item() for c in corners]
        return {
            "share_said": [said.share, *said.share_interval],
            "cpk_said": [said.cpk, *said.cpk_interval],
            "scatter_said": [scatter.value, scatter.low, scatter.high],
            "level": level,
            "worst_corner": min(shares, default=None),
        }

    def summary(self, results: Results) -> str:
        """Tabulate true shares, how often intervals hold the truth, and the worst corners."""
        header = ["true share in spec, median (worst)", "best possible", *METHODS]
        rows = [
            [job, f"{problem.measure_optimum(spec).value:.1%}",
             *(_median(results.of(f"{job}: {m}")) for m in METHODS)]
            for job, (problem, spec) in JOBS.items()
        ]  # fmt: skip
        ours = {job: results.of(f"{job}: {AIRBO}") for job in JOBS}
        everything = [result for each in ours.values() for result in each]
        held = ["share", "cpk", "scatter"]
        kept = [[job, str(len(each)), *(_held(each, key) for key in held), _corners(each)]
                for job, each in [*ours.items(), ("all", everything)]]  # fmt: skip
        return "\n\n".join(
            [
                f"After {N_EXPERIMENTS} experiments.",
                table.markdown(header, rows),
                "The same seed, airbo's share less that of another method, in points: mean (95% "
                "interval over pairs).",
                table.markdown(["airbo and", "ahead : behind", "points"], _pairs(results)),
                "How often the 90% interval at the recommended design contains the true value, and "
                "how often the worst corner of the joint window keeps its level.",
                table.markdown(["job", "runs", *held, "worst corner"], kept),
            ]
        )


def values_at(problem: Problem, design: Design) -> Tensor:
    """Return f at many executed inputs of a design."""
    X, P = torch.tensor([design], dtype=torch.float64), problem.uncertainty
    return problem(P.perturb(X, base_draws(N_TRUE, P.n_base(X.shape[-1]))))[0]


def _median(each: list[dict[str, Any]]) -> str:
    shares = [r["share"] for r in each]
    return f"{np.median(shares):.1%} ({min(shares):.1%})" if shares else "–"


def _pairs(results: Results) -> list[list[str]]:
    """Compare the shares that two methods reach on the same job with the same seed."""
    shares = {(task.label, task.seed): result["share"] for task, result in results}
    rows = []
    for rival in (PERTURBED, PLAIN):
        leads = [
            100 * (ours - theirs)
            for (label, seed), ours in shares.items()
            if label.endswith(f": {AIRBO}")
            for theirs in [shares.get((label.replace(AIRBO, rival), seed))]
            if theirs is not None
        ]
        if leads:
            won, lost = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
            rows.append([rival, f"{won} : {lost}", with_interval(np.array(leads), "+.1f")])
    return rows


def _held(each: list[dict[str, Any]], key: str) -> str:
    inside = [r[f"{key}_said"][1] <= r[key] <= r[f"{key}_said"][2] for r in each]
    return f"{np.mean(inside):.0%}" if inside else "–"


def _corners(each: list[dict[str, Any]]) -> str:
    there = [r for r in each if r["worst_corner"] is not None]
    kept = sum(r["worst_corner"] >= r["level"] for r in there)
    return f"{kept} of {len(there)}"


HANDOVER = Handover()
