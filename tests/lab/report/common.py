"""Small optimizations to report on."""

import random

import airbo
from airbo import uncertainty as unc
from airbo.lab.report import Findings
from airbo.space.cube import Cube

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror=hacked=2>"


def optimizer(space, uncertainty=None, n=8, f=None, failed=(), **settings):
    """Run a few experiments at the initial designs."""
    opt = airbo.Optimizer(space, uncertainty, n_initial=max(n, 1) + 2, **settings)
    rng = random.Random(7)
    sign = 1 if opt.direction == "maximize" else -1
    for i in range(n):
        design = opt.ask()
        value = sign * (bowl(opt.space, design) if f is None else f(design)) + rng.gauss(0, 0.01)
        opt.tell(design, None if i in failed else value)
    return opt


def bowl(space, design):
    """A quadratic function with its best design in the middle, whatever the parameters are."""
    Z = Cube(space).axes.from_columns(Cube(space).columns(design))
    return 1.0 - (Z - 0.5).square().sum().item()


def one(**settings):
    return optimizer({"x": (0.0, 1.0)}, {"x": unc.Normal(0.1)}, **settings)


def milling(**settings):
    space = {
        "speed": airbo.Float(50.0, 200.0, unit="m/min"),
        "depth": airbo.Float(0.1, 2.0, log=True, unit="mm"),
        "passes": airbo.Integer(1, 5),
        "tool": ["A", "B & C"],
    }
    P = {"speed": unc.Normal(8.0), "depth": unc.Uniform(-0.02, 0.02)}
    return optimizer(space, P, **settings)


def ten(**settings):
    space = {f"x{i}": (0.0, 1.0) for i in range(10)}
    return optimizer(space, {"x0": unc.Normal(0.1), ("x1", "x2"): unc.Ring(0.1)}, **settings)


def hostile():
    opt = optimizer(
        {HOSTILE: airbo.Float(0.0, 1.0, unit=HOSTILE), "%{x} $a$": [HOSTILE, "b"], "c": (0.0, 1.0)},
        {HOSTILE: unc.Normal(0.1)},
        surrogate="ugp",
        failed=[1],
    )
    opt.ask()
    return opt


def outcome(opt, **settings):
    """Return what is known of the first outcome."""
    return Findings(opt, **settings).parts[0]
