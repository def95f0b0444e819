"""Robust optimization as an experiment: a fair comparison, and what is made of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from experiments.__main__ import app
from experiments.harness.experiment import Results
from experiments.paper.ablation import ABLATION
from experiments.paper.optimization import DOUBLE_PEAK, METHODS, Optimization
from experiments.paper.push import PUSH
from experiments.registry import EXPERIMENTS, VARIANTS, find
from experiments.subjects.methods import DEFAULT, ERBF, GP, NYSTROM, SKL, UGP_40

SHORT = replace(DOUBLE_PEAK, methods=(GP, SKL), n_steps=2)


def no_step(done, total):
    pass


@pytest.fixture(scope="module")
def results():
    tasks = SHORT.tasks(1)
    return Results([(task, SHORT.run(task, no_step)) for task in tasks])


@pytest.mark.slow
def test_every_method_starts_from_the_same_designs_and_values(results):
    (_, one), (_, two) = results
    assert one["designs"][:10] == two["designs"][:10]
    assert one["values"][:10] == two["values"][:10]


@pytest.mark.slow
def test_another_repeat_starts_from_other_designs(results):
    task = SHORT.tasks(2)[2]
    assert task.seed == 1
    assert SHORT.run(task, no_step)["designs"][0] != results.each[0][1]["designs"][0]


@pytest.mark.slow
def test_a_repeat_can_be_repeated(results):
    task, before = results.each[0]
    again = SHORT.run(task, no_step)
    assert {**again, "seconds": 0} == {**before, "seconds": 0}


@pytest.mark.slow
def test_regrets_are_those_of_the_outcomes(results):
    for _, result in results:
        outcomes = torch.tensor([result["designs"][i] for i in result["outcomes"]]).double()
        # designs are stored to six digits, and the peaks are steep
        expected = SHORT.problem.regret(outcomes).numpy()
        np.testing.assert_allclose(SHORT.regrets(result), expected, atol=1e-3)
        assert (SHORT.regrets(result) >= -1e-6).all()


@pytest.mark.slow
def test_steps_are_reported_from_the_initial_designs_to_the_last(results):
    seen = []
    task = SHORT.tasks(1)[0]
    SHORT.run(task, lambda done, total: seen.append((done, total)))
    assert seen == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.slow
def test_the_table_has_the_regrets_of_every_method(results):
    header, _, *rows = [
        line.strip("| ").split(" | ") for line in SHORT.summary(results).split("\n")
    ]
    for row, (task, result) in zip(rows, results, strict=True):
        cells = dict(zip(header, row, strict=True))
        first, middle, last = SHORT.regrets(result)
        assert cells["method"] == task.label
        assert cells["regret of the initial outcome"] == f"{first:.3f}"
        assert cells["half way"] == f"{middle:.3f}"
        assert cells["at the end: mean"] == cells["median"] == f"{last:.3f}"
        assert cells["best so far"] == f"{min(first, middle, last):.3f}"


def test_the_methods_and_sizes_are_those_of_the_paper():
    assert set(METHODS) == {NYSTROM, UGP_40, GP, SKL, ERBF, DEFAULT}
    sizes = {name: e.n_steps for name, e in EXPERIMENTS.items() if isinstance(e, Optimization)}
    assert sizes == {
        "rkhs": 50,
        "double-peak": 50,
        "bumped-bowl": 100,
        "push": 100,
        "ablation": 50,
    }
    assert [m.label for m in ABLATION.methods][:4] == [
        "MMDGP-nystrom(16/9)",
        "MMDGP-raw-S(12)",
        "MMDGP-raw-L(16)",
        "GP",
    ]


def test_variants_differ_in_the_acquisition_only():
    ours, theirs = (e.tasks(1)[0].config for e in (PUSH, VARIANTS["push-ei"]))
    assert ours["protocol"].pop("acquisition") == "ucb"
    assert theirs["protocol"].pop("acquisition") == "ei"
    assert ours == theirs


def test_expected_improvement_can_be_used():
    experiment = replace(SHORT, acquisition="ei", n_steps=1)
    result = experiment.run(experiment.tasks(1)[0], no_step)
    assert len(result["outcomes"]) == 2


@pytest.mark.slow
def test_pushes_that_were_found_are_drawn(tmp_path):
    designs = [[5.0, 4.1, 25.5], [-4.2, -4.1, 30.0]]
    found = {"designs": designs, "values": [1, 1], "outcomes": [0, 1], "seconds": 1.0}
    tasks = [task for task in PUSH.tasks(2) if task.label in (GP.label, SKL.label)]
    each = [(task, {**found, "expected": [0.5, 0.43]}) for task in tasks]
    assert len(PUSH.plot(Results(each), tmp_path)) == 3
    assert "| GP | 2 | 0 | 0 | 0 |" in PUSH.summary(Results(each))


def test_an_unknown_experiment_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no experiment 'rkhz'; there are .*rkhs"):
        find("rkhz")
    refused = CliRunner().invoke(app, ["run", "rkhz"])
    assert refused.exit_code == 2
    assert "rkhs" in refused.output


def test_there_is_nothing_to_plot_before_a_run(tmp_path):
    refused = CliRunner().invoke(app, ["plot", "rkhs", "--results", str(tmp_path)])
    assert refused.exit_code == 1
    assert "python -m experiments run rkhs" in " ".join(refused.output.split())


def test_the_list_says_what_there_is():
    shown = CliRunner().invoke(app, ["list"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ("rkhs", "push", "ablation"))


def test_one_method_or_case_can_be_run_alone(tmp_path):
    command = ["run", "rkhs", "--quick", "--repeats", "1", "--results", str(tmp_path)]
    refused = CliRunner().invoke(app, [*command, "--only", "GP?"])
    assert refused.exit_code == 2
    assert "no method or case 'GP?'" in " ".join(refused.output.split())
    done = CliRunner().invoke(app, [*command, "--only", "GP"])
    assert done.exit_code == 0, done.output
    assert [path.name.split("-")[0] for path in tmp_path.rglob("*.json")] == ["gp"]
