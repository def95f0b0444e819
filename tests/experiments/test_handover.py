"""Are the numbers true that go with a design: counted, and run once in a small version."""

import pytest
import torch

from airbo.measures import InSpec
from experiments.harness.experiment import Results, Task
from experiments.measures import handover
from experiments.measures.handover import (
    AIRBO,
    HANDOVER,
    JOBS,
    PERTURBED,
    PLAIN,
    share_within,
    values_at,
)
from tests.experiments.small import small_tasks


def test_the_share_of_a_normal_within_limits_is_the_closed_form():
    values, sigma = torch.tensor([0.0, 1.0, 5.0]).double(), torch.tensor(1.0).double()
    found = share_within(InSpec(-1.0, 1.0), values, sigma)
    assert found.tolist() == pytest.approx([0.6827, 0.4772, 0.00003], abs=1e-4)
    assert share_within(InSpec(high=1.0), values, sigma)[1].item() == pytest.approx(0.5)


def test_every_job_can_be_done_but_not_by_most_designs():
    for problem, spec in JOBS.values():
        low, high = problem.bounds
        shares = [
            spec.of(values_at(problem, (low + u * (high - low)).tolist())).item()
            for u in torch.rand(20, len(low), generator=torch.Generator().manual_seed(0))
        ]
        assert sum(share < 0.8 for share in shares) >= 14  # fmt: skip


def test_intervals_and_corners_are_counted(monkeypatch):
    monkeypatch.setattr(handover, "JOBS", {"milling": JOBS["milling"]})
    good = {"share": 0.9, "share_said": [0.9, 0.8, 0.95], "cpk": 1.0, "cpk_said": [1.2, 1.1, 1.3],
            "scatter": 1.0, "scatter_said": [1.0, 0.9, 1.1], "level": 0.7,
            "worst_corner": 0.8}  # fmt: skip
    bad = {**good, "worst_corner": 0.6, "scatter": 2.0}
    each = [(Task("handover", f"milling: {AIRBO}", i, {}), r) for i, r in enumerate((good, bad))]
    each += [(Task("handover", f"milling: {PLAIN}", i, {}), {"share": 0.8}) for i in (1, 2)]
    text = HANDOVER.summary(Results(each))
    assert "| plain GP | 1 : 0 | +10.0 (+10.0 to +10.0) |" in text  # seed 1 is the only pair
    assert "| milling | 2 | 100% | 0% | 50% | 1 of 2 |" in text


@pytest.mark.slow
def test_a_small_version_runs():
    tasks = [task for task in small_tasks(HANDOVER) if task.config["job"] == "milling"]
    found = {task.label: HANDOVER.run(task) for task in tasks}
    assert set(found) == {f"milling: {method}" for method in (AIRBO, PERTURBED, PLAIN)}
    assert all(0 <= result["share"] <= 1 for result in found.values())
