"""The paper's optimizations: its estimator as printed, a fair comparison, and honest verdicts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from airbo.embeddings import Empirical, Nystrom
from airbo.problems import RKHS
from airbo.uncertainty import Relative
from experiments.__main__ import app
from experiments.harness.experiment import Results, Task
from experiments.harness.store import Store
from experiments.paper import optimizations
from experiments.paper.optimizations import ABLATION, CLAIMS, EI, FIVE, MAIN, PAPER, verdict
from experiments.subjects import literal as literal_module
from experiments.subjects.cases import CASES, Case
from experiments.subjects.literal import LiteralKernel, LiteralLoop
from experiments.subjects.methods import ERBF, GP, SKL

CASE = CASES["double-peak"]


def kernel(n=4, m=12, h=None, d=2, seed=0):
    random = torch.Generator().manual_seed(seed)
    X = torch.rand(n, d, generator=random, dtype=torch.float64)

    def draw(k):
        return 0.1 * torch.randn(k, m, d, generator=random, dtype=torch.float64)

    return X, LiteralKernel(X, draw, h)


# -- the estimator as printed


def test_mmd_is_the_u_statistic():
    X, literal = kernel(n=2)
    K = literal(X).to_dense()
    with torch.no_grad():
        u, v = literal.kept
        between = [[literal.base(a[None], b[None])[0] for b in (u, v)] for a in (u, v)]
    own = [(K_aa.sum() - K_aa.trace()) / (12 * 11) for K_aa in (between[0][0], between[1][1])]
    mmd2 = sum(own) - 2 * between[0][1].mean()
    assert K[0, 1].item() == pytest.approx(torch.exp(-mmd2).item(), rel=1e-9)


def test_equation_nine_with_all_landmarks_is_the_mean_of_the_kernel_matrix():
    _, literal = kernel(m=6, h=6)
    u, v = literal.kept[:1], literal.kept[1:2]
    with torch.no_grad():
        for pair in ((u, u), (u, v)):
            assert literal._mixed(*pair).item() == pytest.approx(
                literal.base(*pair).mean().item(), rel=1e-3
            )


def test_equation_nine_has_landmarks_in_its_mixed_term_too():
    _, literal = kernel(m=40, h=3)
    u, v = literal.kept[:1], literal.kept[1:2]
    with torch.no_grad():
        W, W_h = literal.base(u, v)[0], literal.base(u[:, :3], v[:, :3])[0]
        printed = W[:, :3].sum(0) @ torch.linalg.pinv(W_h) @ W[:3].sum(1) / 40**2
        assert literal._mixed(u, v).item() == pytest.approx(printed.item(), rel=1e-6)
        assert literal._mixed(u, v).item() != pytest.approx(W.mean().item(), rel=1e-6)


@pytest.mark.parametrize("h", [None, 5])
def test_observations_keep_their_samples_and_candidates_do_not(h):
    X, literal = kernel(n=6, m=20, h=h)
    with torch.no_grad():
        assert torch.equal(literal(X).to_dense(), literal(X).to_dense())
        candidate = torch.full((1, 2), 0.5, dtype=torch.float64)
        once, again = (literal(candidate, X).to_dense() for _ in range(2))
    assert not torch.equal(once, again)
    assert torch.equal(literal(X[:1], X).to_dense()[0, 0], torch.tensor(1.0).double())


@pytest.mark.parametrize("h", [None, 5])
def test_a_gradient_is_the_same_whether_its_parts_are_kept_or_worked_out_again(h, monkeypatch):
    slopes = []
    for n_kept in (0, 512):
        monkeypatch.setattr(literal_module, "N_KEPT", n_kept)
        X, literal = kernel(n=6, m=8, h=h)
        candidate = torch.full((1, 2), 0.5, dtype=torch.float64, requires_grad=True)
        literal(candidate, X).to_dense().sum().backward()
        slopes.append(candidate.grad)
    assert torch.equal(*slopes)


@pytest.mark.parametrize("h", [None, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_matrix_of_observations_can_be_factorized(h, seed):
    X, literal = kernel(n=15, m=8, h=h, seed=seed)
    K = literal(X).to_dense().detach()
    torch.testing.assert_close(K, K.mT)
    assert torch.linalg.eigvalsh(K)[0] > -1e-9
    assert (K.diagonal() >= 1).all()


def test_a_batch_of_candidates_has_the_shape_of_its_posterior():
    X, literal = kernel(n=5, m=8, h=3)
    candidates = torch.rand(7, 1, 2, dtype=torch.float64)
    assert literal(candidates, X.expand(7, 5, 2)).to_dense().shape == (7, 1, 5)


def test_the_literal_loop_asks_within_the_range_and_recommends_a_design_that_was_tried():
    for acquisition in ("ucb", "ei"):
        loop = LiteralLoop(CASE, 0, Nystrom(16, 4), acquisition)
        for i, x in enumerate(CASE.first_designs(0, 6, uniform=True)):
            loop.tell(x, CASE.value(CASE.executed(x, 0, i), 0, i))
        [x] = loop.ask()
        assert 0 <= x <= 1
        assert loop.recommend() in loop.designs


def test_errors_that_change_with_the_design_are_refused():
    changing = Case("relative", "varies", RKHS(Relative(CASES["rkhs"].tried_under)))
    with pytest.raises(ValueError, match="additive"):
        LiteralLoop(changing, 0, Empirical(4))


# -- the comparison


def task_of(case, method, seed=0, n=12):
    config = {"case": case, "method": method, "budget": n, "protocol": optimizations.PROTOCOL}
    return Task("paper", f"{case}: {method}", seed, config)


def test_a_repeat_starts_from_ten_designs_that_all_share_and_can_be_repeated():
    results = [PAPER.run(task_of("double-peak", m)) for m in (GP.label, SKL.label)]
    assert results[0]["regret"][0] == pytest.approx(results[1]["regret"][0])
    again = PAPER.run(task_of("double-peak", GP.label))
    assert {**again, "seconds": 0} == {**results[0], "seconds": 0}
    assert len(again["regret"]) == 2  # after the first designs, and at the end
    assert again["regret"][-1] == pytest.approx(CASE.regrets([again["outcome"]])[0], abs=1e-3)
    other = PAPER.run(task_of("double-peak", GP.label, seed=1))
    assert other["best_value"] != again["best_value"]


def test_methods_sizes_and_repeats_are_those_of_the_paper():
    assert {name: p.n_steps for name, p in FIVE.items()} == {
        "rkhs": 50, "double-peak": 50, "bumped-bowl": 100, "push": 100, "rkhs-beta": 50,
    }  # fmt: skip
    tasks = PAPER.tasks(PAPER.repeats)
    assert {t.seed for t in tasks if t.config["method"].endswith(EI)} == {0, 1, 2}
    one_dimension = [t for t in tasks if t.config["case"] not in optimizations.SLOW]
    for some in (tasks, one_dimension):
        assert {t.seed for t in some if not t.config["method"].endswith(EI)} == set(range(12))
    assert all(any(m.endswith(EI) for m in p.methods) for p in FIVE.values())
    assert {c.better for c in CLAIMS} | {o for c in CLAIMS for o in c.than} <= {*MAIN, *ABLATION}


CLAIM = next(c for c in CLAIMS if c.case == "double-peak" and len(c.than) == 2)


def made(ours, theirs, n=12):
    spread = 0.01 * np.sin(np.arange(n))
    levels = {CLAIM.better: ours, **dict.fromkeys(CLAIM.than, theirs)}
    return Results([
        (task_of("double-peak", m, seed), {"regret": [level + spread[seed] * (m in CLAIM.than)]})
        for m, level in levels.items() for seed in range(n)
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs", "n", "word"),
    [
        (1.0, 2.0, 12, "yes"),
        (2.0, 1.0, 12, "no"),
        (1.0, 1.0, 12, "no difference shown"),
        (2.0, 1.0, 11, "not tested as in the paper"),
    ],
)
def test_a_claim_is_refuted_only_by_the_papers_own_method_in_all_repeats(ours, theirs, n, word):
    assert verdict(made(ours, theirs, n), CLAIM)[0] == word


def test_a_rival_that_is_not_the_papers_refutes_nothing():
    results = made(2.0, 2.0)
    for task, result in results:
        if task.config["method"] == ERBF.label:
            result["regret"][-1] -= 1.0
    assert verdict(results, CLAIM)[0] == "not tested as in the paper"


def test_pushes_that_were_found_are_counted_by_quadrant():
    outcomes = [[5.0, 4.1, 25.5], [-4.2, -4.1, 30.0]]
    each = [(task_of("push", GP.label, i), {"outcome": x}) for i, x in enumerate(outcomes)]
    assert "| plain GP | 1 | 0 | 1 | 0 |" in optimizations._quadrants(Results(each))


# -- commands


def test_an_unknown_experiment_is_refused_with_the_known_ones():
    refused = CliRunner().invoke(app, ["plot", "papers"])
    assert refused.exit_code == 2
    assert "dilemma" in refused.output


def test_there_is_nothing_to_plot_before_a_run(tmp_path):
    for name, needed in (("paper", "paper"), ("readme", "benchmark")):
        refused = CliRunner().invoke(app, ["plot", name, "--results", str(tmp_path)])
        assert refused.exit_code == 1
        assert f"python -m experiments {needed}" in " ".join(refused.output.split())


def test_the_list_says_what_there_is():
    shown = CliRunner().invoke(app, ["list"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ("paper", "choose", "benchmark"))


def test_one_method_on_one_case_can_be_run_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(FIVE, "rkhs", replace(FIVE["rkhs"], n_steps=2))
    command = ["paper", "--repeats", "1", "--results", str(tmp_path)]
    command += ["--images", str(tmp_path)]
    refused = CliRunner().invoke(app, [*command, "--only", "GP?"])
    assert refused.exit_code == 2
    assert "no method or case 'GP?'" in " ".join(refused.output.split())
    done = CliRunner().invoke(app, [*command, "--only", "GP", "--only", "rkhs"])
    assert done.exit_code == 0, done.output
    tasks = PAPER.tasks(1)
    assert [task.label for task in tasks if Store(tmp_path).has(task)] == ["rkhs: GP"]
