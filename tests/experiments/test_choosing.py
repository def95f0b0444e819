"""The comparison of surrogates: fair between ours and others', and what is made of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

from airbo.uncertainty import base_draws
from experiments.choosing.comparison import (
    BASELINES,
    CHOOSE,
    CHOOSING,
    CONFIRM,
    PEERS,
    SCREENING,
    Choosing,
)
from experiments.choosing.predicting import Predicting
from experiments.harness.experiment import Results
from experiments.harness.palette import shown
from experiments.paper.optimization import DOUBLE_PEAK, PROTOCOL, Optimization
from experiments.registry import EXPERIMENTS
from experiments.subjects.cases import CASES
from experiments.subjects.methods import BOTORCH, BOTORCH_PERTURBED, EXPECTATION, GP, Method, start
from experiments.subjects.peers import N_PERTURBATIONS

EXACT_NOW = Optimization("toy-exact", "", "Exact now", "double-peak-exact", 2)
SHORT = Choosing("toy", "Toy", (DOUBLE_PEAK, EXACT_NOW), (EXPECTATION, GP, *PEERS))
CONFIG = {"protocol": {**PROTOCOL, "acquisition": "ucb"}}


def no_step(done, total):
    pass


@pytest.fixture(scope="module")
def results():
    short = replace(SHORT, cases=(replace(DOUBLE_PEAK, n_steps=2), EXACT_NOW))
    return Results([(task, short.run(task, no_step)) for task in short.tasks(1)])


def of(results, case):
    return [result for task, result in results if task.experiment == case.name]


@pytest.mark.slow
@pytest.mark.parametrize("case", [DOUBLE_PEAK, EXACT_NOW], ids=lambda case: case.name)
def test_ours_and_others_start_from_the_same_designs_and_values(results, case):
    first, *others = of(results, case)
    assert len(others) == 3
    for other in others:
        np.testing.assert_allclose(other["designs"][:10], first["designs"][:10], atol=1e-6)
        np.testing.assert_allclose(other["values"][:10], first["values"][:10], atol=1e-4)


@pytest.mark.slow
def test_exact_experiments_give_the_function_and_are_judged_in_use(results):
    problem = EXACT_NOW.problem
    for result in of(results, EXACT_NOW):
        X = torch.tensor(result["designs"], dtype=torch.float64)
        np.testing.assert_allclose(result["values"], problem(X), atol=2e-3)
        recommended = torch.tensor(result["recommended"], dtype=torch.float64)
        np.testing.assert_allclose(result["expected"], problem.expected(recommended), atol=2e-3)
        assert result["at"] == [10, 12]
        assert result["anywhere"] == result["expected"][-1]


@pytest.mark.slow
def test_predictions_are_held_against_the_truth(results):
    for _, result in results:
        assert 0 <= result["covered"] <= 1
        assert result["rmse"] > 0


def loop_with_data(method, case_name, n=12):
    case = CASES[case_name]
    loop = start({**CONFIG, **method.config()}, case, seed=3)
    X = case.problem.bounds[0] + base_draws(n, case.space.d) * case.problem.bounds.diff(dim=0)
    for i, design in enumerate(X.tolist()):
        loop.tell(design, case.observe(design, 3, i))
    return loop, case, X


@pytest.mark.parametrize("case_name", ["branin", "hills", "double-peak-exact"])
def test_peers_are_a_plain_gp_and_its_mean_over_perturbed_designs(case_name):
    plain, case, X = loop_with_data(BOTORCH, case_name)
    perturbed, _, _ = loop_with_data(BOTORCH_PERTURBED, case_name)
    problem = case.problem
    low, width = problem.bounds[0], problem.bounds.diff(dim=0)
    sign = 1 if problem.direction == "maximize" else -1
    Y = torch.tensor(plain.values, dtype=torch.float64).unsqueeze(-1)
    model = SingleTaskGP((X - low) / width, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))

    Q = X[:3] * 0.9 + 0.1 * X[4:7]
    with torch.no_grad():
        at_designs = model.posterior((Q - low) / width).mean.squeeze(-1)
        samples = problem.uncertainty.perturb(
            Q, base_draws(N_PERTURBATIONS, problem.uncertainty.n_base(case.space.d))
        )
        on_average = model.posterior((samples - low) / width).mean.squeeze(-1).mean(-1)
    np.testing.assert_allclose(plain.predict(Q)[0], sign * at_designs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(perturbed.predict(Q)[0], sign * on_average, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", PEERS, ids=lambda m: m.label)
@pytest.mark.parametrize("policy", ["observed", "anywhere"])
def test_the_outcome_of_a_peer_is_where_its_prediction_is_best(method, policy):
    loop, case, X = loop_with_data(method, "branin")
    outcome = torch.tensor([loop.outcome(policy)], dtype=torch.float64)
    best = loop.predict(outcome)[0].item()
    assert best <= loop.predict(X)[0].min() + 1e-9  # Branin is minimized
    assert ((outcome >= case.problem.bounds[0]) & (outcome <= case.problem.bounds[1])).all()
    if policy == "observed":
        assert outcome.tolist()[0] in X.tolist()


def test_results_of_the_papers_cases_are_shared():
    ours = {(t.experiment, t.set_name, t.seed) for t in CHOOSING.tasks(12)}
    for experiment in CHOOSE[:3]:
        paper = EXPERIMENTS[experiment.name]
        shared = [t for t in paper.tasks(12) if t.label in {m.label for m in BASELINES}]
        assert shared
        assert {(t.experiment, t.set_name, t.seed) for t in shared} <= ours


def test_the_cases_for_choosing_and_for_confirming_are_different_ones():
    assert not {c.name for c in CHOOSE} & {c.name for c in CONFIRM}
    assert set(SCREENING.cases) == set(CHOOSE)
    assert len(CHOOSING.tasks(20)) == 20 * len(CHOOSE + CONFIRM) * len(CHOOSING.methods)


def test_wins_and_losses_are_counted_repeat_by_repeat():
    best = DOUBLE_PEAK.problem.robust_optimum.value
    regrets = {EXPECTATION.label: [0.1, 0.2, 0.3], GP.label: [0.2, 0.1, 0.4]}
    each = []
    for task in SHORT.tasks(3):
        if task.experiment == DOUBLE_PEAK.name and task.label in regrets:
            expected = [best - 1.0] * 50 + [best - regrets[task.label][task.seed]]
            each.append((task, {"expected": expected, "seconds": 1.0, "covered": 0.9}))
    text = SHORT.summary(Results(each))
    row = f"| {shown(GP.label)} | 3 | 1.000 | 1.000 | 0.233 | 0.100 to 0.400 | 0.200 | – | 2 : 1 |"
    assert row in text
    assert "| **0.200** | 0.233 | – | – |" in text


@pytest.mark.slow
def test_the_overview_marks_the_best_method_of_every_case(results):
    overview = SHORT.summary(results).split("\n\n")[0].splitlines()
    assert overview[0].strip("| ").split(" | ")[1:] == [m.label for m in SHORT.methods]
    for case, row in zip(SHORT.cases, overview[2:], strict=True):
        title, *cells = row.strip("| ").split(" | ")
        assert title == case.title
        regrets = [case.regret_after(result, 1.0) for result in of(results, case)]
        best = f"**{min(regrets):.3f}**"
        assert best in cells
        assert [cell.strip("*") for cell in cells] == [f"{regret:.3f}" for regret in regrets]


@pytest.mark.slow
def test_the_picture_has_a_panel_per_case_and_shows_the_regrets(results, tmp_path, monkeypatch):
    panels = []
    monkeypatch.setattr(
        "experiments.choosing.comparison.draw_final_regrets",
        lambda ax, finals: panels.append((ax, finals)),
    )
    assert SHORT.plot(results, tmp_path) == [tmp_path / "toy.png"]
    assert [ax.get_title(loc="left") for ax, _ in panels] == [case.title for case in SHORT.cases]
    for case, (_, finals) in zip(SHORT.cases, panels, strict=True):
        shown = [rows[0, 0] for rows in finals.values()]
        assert shown == [case.regret_after(result, 1.0) for result in of(results, case)]


@pytest.mark.slow
def test_in_use_unlike_the_experiments_the_outcome_comes_from_anywhere(results):
    *_, exact_now = SHORT.summary(results).split("## ")
    table = [line.strip("| ").split(" | ") for line in exact_now.splitlines() if "|" in line]
    header, _, *rows = table
    assert len(rows) == len(SHORT.methods)
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        assert cells["from anywhere"] == cells["mean at 100%"]


@pytest.mark.slow
def test_predictions_are_scored_against_the_true_expected_values(tmp_path):
    methods = (EXPECTATION, GP, Method("squared exponential", "squared exponential"))
    experiment = Predicting("toy", "Toy", methods)
    [task] = [t for t in experiment.tasks(1, quick=True) if t.config["case"] == "wave"]
    result = experiment.run(task, no_step)
    assert list(result) == [m.label for m in methods]
    assert all(0 <= scores["covered"] <= 1 for scores in result.values())
    assert len({scores["rmse"] for scores in result.values()}) == 3
    results = Results([(task, result)])
    assert "| wave, n = 15 |" in experiment.summary(results)
    assert experiment.plot(results, tmp_path) == [tmp_path / "toy.png"]
