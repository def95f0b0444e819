"""The comparison of methods: fair draws, true optima, disjoint halves, and the rule applied."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from typer.testing import CliRunner

from airbo.acquisition import RandomizedUCB
from airbo.seeds import reproducible, stream_seed
from airbo.uncertainty import Normal, base_draws
from experiments.__main__ import app
from experiments.benchmark import plan, report
from experiments.benchmark.runs import BENCHMARK, CHOOSE, SLIP, along, optimize
from experiments.harness.experiment import Results, Task
from experiments.harness.store import Store
from experiments.subjects.cases import CASES, find_case, slip_case
from experiments.subjects.landscapes import LANDSCAPES, landscape
from experiments.subjects.loops import BoTorchLoop, RandomLoop, StandardLoop

pytestmark = pytest.mark.usefixtures("quick_search")

N_STEPS = 1_000
CANDIDATES = list(plan.CANDIDATES)
FOUR_SIGMA = 4 / math.sqrt(N_STEPS - 1)


# -- draws


def chances(case, repeat, i):
    """Return one number of every purpose in one evaluation."""
    executed = case.executed([0.0], repeat, i)[0]  # the deviation of an additive error
    value = case.value([0.0], repeat, i)
    with reproducible(stream_seed(case.seed(repeat), "optimizer"), "ask", i):
        beta = RandomizedUCB().draw_beta()
    [first] = case.first_designs(repeat, n=1, uniform=True)[0]
    return executed, value, beta, first


def test_errors_noise_designs_and_the_optimizers_chance_are_independent():
    case = replace(CASES["rkhs"], noise=1.0)
    assert isinstance(case.tried_under, Normal)
    along_a_run = np.array([chances(case, 0, i)[:3] for i in range(N_STEPS)])
    over_repeats = np.array([chances(case, repeat, 0) for repeat in range(N_STEPS)])
    for numbers in (along_a_run, over_repeats):
        correlations = spearmanr(numbers).statistic
        apart = correlations[~np.eye(len(correlations), dtype=bool)]
        assert np.abs(apart).max() < FOUR_SIGMA


def test_the_error_of_evaluation_i_is_the_same_for_every_design_and_at_any_time():
    case = CASES["double-peak"]
    first = case.executed([0.2], 3, 7)[0] - 0.2
    case.executed([0.9], 3, 8)
    assert case.executed([0.6], 3, 7)[0] - 0.6 == pytest.approx(first, abs=1e-12)
    assert case.executed([0.6], 3, 8)[0] - 0.6 != pytest.approx(first, abs=1e-6)
    assert case.executed([0.6], 4, 7)[0] - 0.6 != pytest.approx(first, abs=1e-6)


def test_other_cases_have_other_errors():
    one, other = CASES["double-peak"], CASES["rkhs-beta"]
    assert one.tried_under == other.tried_under
    assert one.executed([0.5], 0, 0) != other.executed([0.5], 0, 0)


class Remembering(RandomLoop):
    """A method that says what it was told."""

    told: list

    def tell(self, design, value, executed=None):
        self.told.append((design, value))
        super().tell(design, value, executed)


def test_every_method_is_told_the_same_first_designs_and_values():
    case, told = CASES["hills"], []
    for seed_of_method in (0, 1):

        def start(case, repeat, seed_of_method=seed_of_method):
            loop = Remembering(case, repeat + 100 * seed_of_method)
            loop.told = []
            told.append(loop.told)
            return loop

        optimize(case, start, 2, case.n_initial + 2)
    one, other = told
    assert one[: case.n_initial] == other[: case.n_initial]
    assert one[case.n_initial :] != other[case.n_initial :]


# -- cases and truths


def test_the_halves_are_disjoint_and_complete():
    slips = {f"slip 15% {name}" for name in plan.SLIPS_CHOOSING}
    assert set(plan.CHOOSING) & set(plan.CONFIRMING) == set()
    assert set(plan.CHOOSING) | set(plan.CONFIRMING) == set(CASES) | slips
    assert set(plan.SLIPS_CHOOSING) & set(plan.SLIPS_CONFIRMING) == set()
    assert set(plan.SLIPS_CHOOSING) | set(plan.SLIPS_CONFIRMING) == set(LANDSCAPES)
    kinds = [{find_case(name).kind for name in half} for half in (plan.CHOOSING, plan.CONFIRMING)]
    for kind in ("percent", "varies", "skewed", "two modes", "wide", "negligible", "exact now"):
        assert all(kind in half for half in kinds)


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_design_is_better_than_the_best_one(name):
    case = CASES[name]
    X = case.designs(base_draws(32, case.d, seed=1))
    assert min(case.regrets(X)) > -1e-4 * case.gain
    assert case.regrets([case.truth["design"]])[0] == pytest.approx(0, abs=1e-4 * case.gain)


@pytest.mark.parametrize("name", sorted(LANDSCAPES))
def test_no_point_of_a_landscape_is_above_its_published_maximum(name):
    problem = landscape(name)
    low, high = problem.bounds
    values = problem(low + (high - low) * base_draws(2**12, len(low)))
    assert values.isfinite().all()
    assert values.max().item() <= LANDSCAPES[name].best + 1e-5
    assert slip_case(name, 0.15).gain == slip_case(name, 0.0).gain > 0


PUBLISHED = {
    "golem-1d": ([0.700], 0.664), "golem-2d": ([1.4875, 1.4875], 1.270),
    "golem-2d-wide": ([2.035, 2.035], 2.848), "qing-1d": ([0.350], 5.789),
    "chirp-exact": ([0.3111], 1.0421), "three-bumps-exact": ([0.2003, 0.2002], 0.40012),
    "polynomial-exact": ([0.267, 0.675], 7.342), "double-peak": ([0.2523], 6.4143),
    "rkhs": ([0.0776], 4.9382), "rkhs-beta": ([0.0068], 4.5926),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_truths_are_those_that_were_published(name):
    design, value = PUBLISHED[name]
    assert CASES[name].truth["design"] == pytest.approx(design, abs=4e-3)
    assert CASES[name].truth["value"] == pytest.approx(value, abs=1e-3)


def test_slips_stop_at_the_ends_and_the_answer_is_used_exactly():
    case = find_case("slip 40% branin")
    low, high = case.problem.bounds
    landed = torch.tensor([case.executed([9.9, 0.1], 0, i) for i in range(200)]).double()
    assert ((landed >= low) & (landed <= high)).all()
    assert (landed == high).any()
    assert (landed == low).any()
    assert not case.same_use
    X = torch.tensor([[9.9, 0.1]], dtype=torch.float64)
    assert case.expected(X).item() == case.problem(X).item()


# -- runs


@pytest.mark.parametrize("method", plan.METHODS | plan.CANDIDATES)
def test_every_method_asks_within_the_ranges_and_answers(method):
    case = CASES["hills-machines"]
    start = (plan.METHODS | plan.CANDIDATES)[method]
    result = optimize(case, start, 0, case.n_initial + 1)
    low, high = case.problem.bounds
    design = torch.tensor(result["design"])
    assert ((design >= low) & (design <= high)).all()
    assert min(result["regret"]) > -1e-6
    assert result["at"] == [case.n_initial, case.n_initial + 1]


def test_a_run_can_be_repeated():
    case, start = CASES["double-peak"], plan.METHODS["airbo"]
    one, other = (optimize(case, start, 1, case.n_initial + 2) for _ in range(2))
    for timed in ("seconds", "ask_seconds"):
        del one[timed], other[timed]
    assert one == other
    assert one["observed"] >= -1e-6
    assert one["regret"][-1] in (one["observed"], one["anywhere"])  # as shipped: one of the two


def test_a_logged_input_is_what_a_plain_model_learns_from():
    case = find_case("slip 15% branin")
    loop = BoTorchLoop(case, 0)
    loop.tell([1.0, 1.0], 5.0)
    loop.tell([1.0, 1.0], 5.0, [2.0, 0.5])
    assert loop.designs == [[1.0, 1.0], [2.0, 0.5]]


def test_the_standard_process_uses_the_design_with_the_best_value():
    loop = StandardLoop(find_case("slip 15% branin"), 0)
    for x, value in ((1.0, -5.0), (2.0, -3.0), (3.0, -4.0)):
        loop.tell([x, 0.0], value)
    assert loop.recommend() == [2.0, 0.0]


# -- what is made of the results


def made(experiment, regrets):
    """Return results with these regrets, as shares of the gain: case, method, repeats."""
    each = []
    for (case, method), values in regrets.items():
        gain = find_case(case).gain
        for repeat, r in enumerate(values):
            config = {"case": case, "method": method, "budget": 30}
            result = {
                "regret": [r * gain], "seconds": 36.0, "ask_seconds": 1.0,
                "covered": repeat > 0, "covered_near": 0.9, "observed": r * gain,
                "anywhere": 2 * r * gain,
            }  # fmt: skip
            each.append((Task(experiment, f"{case}: {method}", repeat, config), result))
    return Results(each)


def test_the_simplest_candidate_within_the_margin_wins():
    simple, better = CANDIDATES[0], CANDIDATES[-1]
    for ratio, winner in ((1.04, simple), (1.06, better)):
        results = made("choose", {
            ("wave", simple): [0.1 * ratio] * 2, ("wave", better): [0.1] * 2,
            ("hills", simple): [0.3 * ratio] * 2, ("hills", better): [0.3] * 2,
        })  # fmt: skip
        assert report.choice(results, (simple, better)).startswith(f"**{winner}** ")


def test_regrets_below_the_floor_count_alike():
    one, other = CANDIDATES[:2]
    results = made("choose", {("wave", one): [1e-5], ("wave", other): [9e-4]})
    logs = report.logs(report.finals(results), (one, other))
    assert logs[one].tolist() == logs[other].tolist() == [np.log(plan.FLOOR)]
    [anywhere] = np.exp(report.logs(report.finals(results, "anywhere"), (other,))[other])
    assert anywhere == pytest.approx(1.8e-3)


def test_a_candidate_that_is_too_slow_with_slips_is_shown_without_them_and_cannot_win():
    slow, near = plan.TOO_SLOW[0], CANDIDATES[0]
    results = made("choose", {
        ("wave", slow): [0.05] * 3, ("wave", near): [0.1] * 3,
        ("slip 15% branin", near): [0.4],  # under way
    })  # fmt: skip
    text = report.choice(results, (near, slow))
    assert text.startswith(f"**{near}** ")
    assert f"| {near} | 4 | 20.00 | " in text  # of both cases
    assert f"| {slow} | 3 | – | – | 5.00 | 0.50 " in text


def test_a_candidate_that_is_too_slow_has_a_first_look_without_slips():
    slow = [t for t in CHOOSE.tasks(10) if t.config["method"] in plan.TOO_SLOW]
    assert {t.config["case"] for t in slow} == set(plan.WITHOUT_SLIPS)
    assert {t.seed for t in slow} == {0, 1, 2}
    kinds = {find_case(c).kind for c in set(plan.CHOOSING) - set(plan.WITHOUT_SLIPS)}
    assert kinds == {"slips"}


def test_cases_on_which_another_is_ahead_are_named():
    results = made("benchmark", {
        ("rkhs", "airbo"): [0.2, 0.21, 0.22] * 2, ("rkhs", "BoTorch"): [0.1, 0.11, 0.12] * 2,
        ("cliff", "airbo"): [0.2, 0.0, 0.4] * 2, ("cliff", "BoTorch"): [0.1, 0.3, 0.1] * 2,
        ("golem-2d-growing", "airbo"): [0.04, 0.04], ("golem-2d-growing", "BoTorch"): [0.1, 0.1],
        ("shekel-wide", "airbo"): [0.06, 0.06], ("shekel-wide", "BoTorch"): [0.1, 0.1],
    })  # fmt: skip
    text = report.sentences(report.finals(results))
    assert text.startswith("2 comparisons have fewer than 6 repeats, too few to say who is ahead.")
    assert "ahead beyond chance (95%) on rkhs (BoTorch). If all were equally good, 0 of 2 " in text
    assert "within chance, on cliff (BoTorch)." in text
    assert "on 1 of 2 cases: golem-2d-growing." in text
    # ratios 1.909, 1.2, 0.4 and 0.6: their geometric mean, median and maximum
    text = report.comparison(results)
    row = r"\| BoTorch \| 0\.86 \(.*\) \| 0\.90 \| 1\.91 \| 0\.86 \(.*\) \| 6 : 10 \|"
    assert re.search(row, text)


def test_airbo_is_also_compared_as_the_others_recommend():
    results = made("benchmark", {("rkhs", "airbo"): [0.1], ("double-peak-exact", "airbo"): [0.1]})
    for _, result in results:
        result["observed"] = 2 * result["regret"][-1]
    r = report.as_others_recommend(results)
    assert r["rkhs"][0] == pytest.approx(0.2)  # a design that was tried
    assert r["double-peak-exact"][0] == pytest.approx(0.1)  # here others may recommend any


def test_intervals_are_counted_case_by_case():
    results = made("benchmark", {("rkhs", "airbo"): [0.1] * 4, ("cliff", "airbo"): [0.1] * 2})
    text = report.comparison(results)
    assert "| rkhs | 3 of 4 | 90% |" in text
    assert "| cliff | 1 of 2 | 90% |" in text
    assert "| **all** | 67% | 90% |" in text
    assert "2 of 2 cases are within 85% to 95%" in text


def slip_result(method, slip, logged, along, deployed, repeat=0):
    gain = slip_case("levy", 0.0).gain
    config = {"case": "levy", "method": method, "slip": slip, "logged": logged, "budget": 50}
    result = {"along": along * gain, "regret": [deployed * gain], "seconds": 1.0}
    return Task("slip", f"{method}, {slip}", repeat, config), result


def test_what_slips_cost_is_beyond_the_same_method_without_slips():
    results = Results([
        slip_result("airbo", 0.0, False, 0.3, 0.2), slip_result("airbo", 0.15, False, 0.4, 0.25),
        slip_result(plan.STANDARD, 0.0, False, 0.2, 0.1),
        slip_result(plan.STANDARD, 0.15, False, 0.5, 0.6),
        slip_result("airbo", 0.0, False, 0.9, 0.9, repeat=1),  # its run with slips is missing
    ])  # fmt: skip
    lines = report.slips(results).splitlines()
    airbo = next(line for line in lines if line.startswith("| airbo"))
    numbers = [cell.strip().split(" ")[0] for cell in airbo.strip("|").split("|")[2:]]
    assert numbers == ["1", "10.0", "5.0", "20.0", "15.0", "11.5", "34.3"]


def test_a_page_shows_what_slips_cost_only_when_all_landscapes_have_been_run():
    one = Results([slip_result("airbo", slip, False, 0.4, 0.2) for slip in plan.SLIPS])
    assert "not finished" in SLIP.excerpts(one)["slip"][1]


def test_a_run_with_slips_is_as_long_as_those_of_the_study_and_judged_from_the_first_evaluation():
    assert {task.config["budget"] for task in SLIP.tasks(1)} == {50}
    case = slip_case("levy", 0.15)
    assert (case.n_initial, case.truth["value"]) == (5, 0.0)
    # gaps of the best value so far: 4, 3, 3 and 1, so (3.5 + 3 + 2) / 3
    assert along(case, [-4.0, -3.0, -5.0, -1.0]) == pytest.approx(8.5 / 3)


# -- commands


def test_a_benchmark_runs_goes_on_and_is_tabulated_and_drawn(tmp_path):
    command = ["benchmark", "--only", "random", "--only", "rkhs", "--only", "qing-1d"]
    command += ["--results", str(tmp_path), "--images", str(tmp_path)]
    done = CliRunner().invoke(app, [*command, "--repeats", "1"])
    assert done.exit_code == 0, done.output
    labels = ("rkhs: random", "qing-1d: random")
    tasks = [task for task in BENCHMARK.tasks(2) if task.label in labels]
    before = Store(tmp_path).results(tasks)
    assert len(before.each) == 2
    again = CliRunner().invoke(app, [*command, "--repeats", "2"])
    assert again.exit_code == 0, again.output
    after = Store(tmp_path).results(tasks)
    assert list(after)[:2] == list(before)
    assert len(after.each) == 4
    assert "| rkhs (paper) |" in (tmp_path / "benchmark.md").read_text(encoding="utf-8")
    assert (tmp_path / "benchmark-kinds.png").is_file()
