"""Optimization by a measure: ours, and what a BoTorch user does today."""

import warnings
from typing import Any

import torch
from botorch.acquisition.monte_carlo import qSimpleRegret, qUpperConfidenceBound
from botorch.acquisition.risk_measures import CVaR, RiskMeasureMCObjective, VaR, WorstCase
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from airbo import measures
from airbo.measures import Measure
from airbo.seeds import reproducible
from experiments.measures.cases import MeasureCase
from experiments.subjects.cases import Design
from experiments.subjects.internals import estimate_measure
from experiments.subjects.loops import N_PERTURBATIONS, AirboLoop, BoTorchLoop, Loop, PerturbedLoop

N_SAMPLES = 64
"""Draws of the posterior in BoTorch's acquisitions."""
BETA = 2.0
N_JUDGED = 128
"""Perturbations with which BoTorch recommends; as many as airbo takes for that."""


class RiskLoop(PerturbedLoop):
    """``SingleTaskGP`` with ``InputPerturbation``, UCB of a risk measure.

    Noisy expected improvement would compare with all perturbed inputs of all designs at once, and
    take 24 s of processor time per ask after 25 experiments.
    """

    def __init__(self, case: MeasureCase, repeat: int) -> None:
        """Start without observations."""
        super().__init__(case.case, repeat)
        self.measure = case.measure

    def _acquisition(self) -> Any:
        return qUpperConfidenceBound(
            self._fitted(),
            BETA**2,
            sampler=self._sampler(),
            objective=risk_measure(self.measure, self.n_perturbations),
        )

    def recommend(self) -> Design:
        """Return the design with the best risk measure, on average over the posterior."""
        self.n_perturbations = N_JUDGED
        risk = risk_measure(self.measure, N_JUDGED)
        regret = qSimpleRegret(self._fitted(), sampler=self._sampler(), objective=risk)
        with reproducible(self.seed, "recommend"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not self.case.same_use:
                design = self._to_user(self._best(regret))
            else:
                with torch.no_grad():
                    values = [regret(z[None, None]) for z in self._to_cube(self.designs)]
                design = self.designs[int(torch.cat(values).argmax())]
        self.n_perturbations = N_PERTURBATIONS
        return design

    def _sampler(self) -> SobolQMCNormalSampler:
        return SobolQMCNormalSampler(torch.Size([N_SAMPLES]), seed=0)


def risk_measure(measure: Measure, n: int) -> RiskMeasureMCObjective:
    """Return BoTorch's name of a measure over ``n`` perturbations; values are maximized in both."""
    if isinstance(measure, measures.CVaR):
        return CVaR(alpha=measure.level, n_w=n)
    if isinstance(measure, measures.Quantile):
        return VaR(alpha=measure.level, n_w=n)
    if isinstance(measure, measures.Worst):
        return WorstCase(n_w=n)
    raise ValueError(f"BoTorch has no risk measure {measure}.")


def start(method: str, case: MeasureCase, repeat: int) -> Loop:
    """Begin an optimization by one of ``METHODS``."""
    if method == AIRBO:
        return AirboLoop(case.case, repeat, measure=case.measure)
    return RiskLoop(case, repeat) if method == RISK else BoTorchLoop(case.case, repeat)


AIRBO, RISK, PLAIN = "airbo, by the measure", "BoTorch InputPerturbation + risk measure", "plain GP"
METHODS = (AIRBO, RISK, PLAIN)


def truth(case: MeasureCase, designs: list[Design]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the measure of designs, its standard error from 2²⁰ samples, and the regret."""
    problem, measure = case.problem, case.measure
    X = torch.tensor(designs, dtype=torch.float64)
    what = (problem.quick, problem.uncertainty, X, measure, problem.direction)
    values, errors = estimate_measure(*what)
    gap = case.good * (problem.measure_optimum(measure).value - values)
    return values, errors, gap.clamp_min(0)
