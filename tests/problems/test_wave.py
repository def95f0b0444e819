"""The wave: an uncertainty that varies with the design."""

import pytest
import torch

from airbo.problems import Wave
from airbo.uncertainty import base_draws


def test_the_closed_form_is_the_mean_over_executed_inputs():
    wave = Wave()
    X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
    draws = wave.uncertainty.perturb(X, base_draws(2**14, 1))
    assert wave.expected(X).tolist() == pytest.approx(wave(draws).mean(-1).tolist(), abs=1e-3)


def test_the_robust_optimum_is_the_first_crest_and_the_nominal_one_is_not():
    wave = Wave()
    assert wave.robust_optimum.design.item() == pytest.approx(0.0494, abs=1e-3)
    assert wave.robust_optimum.value == pytest.approx(0.9978, abs=1e-3)
    assert wave.nominal_optimum.design.item() == pytest.approx(0.8505, abs=1e-3)
    nominal = wave.nominal_optimum.design.unsqueeze(0)
    assert wave.regret(nominal).item() > 0.4
