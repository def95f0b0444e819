"""Seconds against samples m, designs N and observations n, for the plot."""

from rich.progress import Progress

from airbo.embeddings import Empirical, Nystrom
from experiments.speed.methods import BY_NAME, DEFAULT, YARDSTICK, Timed
from experiments.speed.posterior import Setting, seconds
from experiments.subjects.uncertainties import BY_NAME as CASES
from experiments.subjects.uncertainties import logged

N_ROUNDS = {True: 3, False: 7}
SAMPLES = {True: (10, 100, 1000), False: (10, 30, 100, 300, 1000, 3000, 10_000)}
DESIGNS = {True: (1, 64, 512), False: (1, 8, 64, 512, 4096, 32_768)}
OBSERVATIONS = {True: (10, 100), False: (10, 30, 100, 300, 1000, 2000)}
ESTIMATORS = ("Empirical(20)", "Nystrom(160, 10)")
MAX_PAIRS = {"Empirical(20)": 512 * 100, "Nystrom(160, 10)": 512 * 300}
"""Pairs of a design and an observation up to which an estimator is timed."""
MAX_SAMPLES = {"Empirical(m)": 60, "Nystrom(m, 10)": 10_000}

Curves = dict[str, dict[int, float]]
"""Seconds by method and place on the axis."""


def measure(quick: bool, bar: Progress) -> dict[str, Curves]:
    """Time posteriors in t-batches, under logged deviations (m) and the paper's beta (N, n)."""
    return {
        "m": _against_samples(quick, bar),
        "N": _against(
            {N: Setting(CASES["beta"], 10, joint=False, n_designs=N) for N in DESIGNS[quick]},
            quick,
            bar,
            "designs",
        ),
        "n": _against(
            {n: Setting(CASES["beta"], n, joint=False) for n in OBSERVATIONS[quick]},
            quick,
            bar,
            "observations",
        ),
    }


def _against_samples(quick: bool, bar: Progress) -> Curves:
    curves: Curves = {}
    for m in bar.track(SAMPLES[quick], description="curves: samples"):
        methods = {YARDSTICK.name: YARDSTICK, DEFAULT.name: DEFAULT}
        if m <= MAX_SAMPLES["Empirical(m)"]:
            methods["Empirical(m)"] = Timed("Empirical(m)", Empirical(m))
        if m <= MAX_SAMPLES["Nystrom(m, 10)"]:
            methods["Nystrom(m, 10)"] = Timed("Nystrom(m, 10)", Nystrom(m, 10))
        setting = Setting(logged(m, 1), 10, joint=False)
        for name, spent in seconds(setting, methods.values(), N_ROUNDS[quick]).items():
            curves.setdefault(name, {})[m] = spent
    return curves


def _against(settings: dict[int, Setting], quick: bool, bar: Progress, text: str) -> Curves:
    curves: Curves = {}
    for place, setting in bar.track(settings.items(), description=f"curves: {text}"):
        n_pairs = setting.n * setting.n_designs
        methods = [YARDSTICK, DEFAULT]
        methods += [BY_NAME[name] for name in ESTIMATORS if n_pairs <= MAX_PAIRS[name]]
        for name, spent in seconds(setting, methods, N_ROUNDS[quick]).items():
            curves.setdefault(name, {})[place] = spent
    return curves
