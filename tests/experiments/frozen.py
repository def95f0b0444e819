"""What the default asks and recommends in a few settings: ``test_frozen.py`` compares versions.

``frozen.json`` holds the experiments of each setting, and what commit 825a1970 makes of them. To
make it again, install that commit in a folder of its own, and run this file with its Python:

    .venv/bin/python FOLDER/tests/experiments/frozen.py > FOLDER/tests/experiments/frozen.json
"""

import json
import math
import sys

import torch

import airbo
from airbo import uncertainty as unc

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 2.0)}
NORMAL = {"x": unc.Normal(0.1), "y": unc.Normal(0.2)}
TWO_MODES = unc.GaussianMixture(
    [[-0.15, -0.1], [0.15, 0.1]], [[0.001, 0.0], [0.0, 0.001]], [0.4, 0.6]
)
SETTINGS = {
    "normal": {"space": SQUARE, "uncertainty": NORMAL},
    "skewed": {
        "space": SQUARE,
        "uncertainty": {"x": unc.Beta(0.4, 0.2, scale=0.1), "y": unc.ChiSquared(2.0, scale=0.05)},
    },
    "percent": {
        "space": {"x": (0.5, 1.0), "y": (1.0, 2.0)},
        "uncertainty": {"x": unc.Relative(unc.Normal(0.1)), "y": unc.LogNormal(0.05)},
        "direction": "minimize",
    },
    "two modes": {"space": SQUARE, "uncertainty": TWO_MODES},
    "used otherwise": {"space": SQUARE, "uncertainty": unc.Normal(0.03), "deployment": TWO_MODES},
    "exact now": {"space": SQUARE, "deployment": NORMAL},
    "slips": {
        "space": SQUARE,
        "uncertainty": unc.Normal([0.15, 0.3]).clipped([0.0, 0.0], [1.0, 2.0]),
        "deployment": unc.Exact(),
    },
    "nothing known": {"space": SQUARE},
    "mixed": {
        "space": {"x": (0.0, 1.0), "n": airbo.Integer(1, 5), "tool": airbo.Categorical(["A", "B"])},
        "uncertainty": {"x": unc.Normal(0.1)},
    },
}
N_TOLD = 12


def value(design):
    numbers = ["AB".index(v) if isinstance(v, str) else v for v in design.values()]
    return round(sum(math.sin(3.0 * x + i) * (i + 1) for i, x in enumerate(numbers)), 6)


def experiments(setting):
    """Return the first designs of the library with made-up values, to be told to every version."""
    optimizer = airbo.Optimizer(**setting, n_initial=N_TOLD, seed=1)
    told = []
    for _ in range(N_TOLD):
        told.append(optimizer.ask())
        optimizer.tell(told[-1], value(told[-1]))
    return [{"design": design, "value": value(design)} for design in told]


def answers(setting, told):
    """Return the next design, the recommended one, and what is predicted of it."""
    optimizer = airbo.Optimizer(**setting, seed=0)
    for each in told:
        optimizer.tell(each["design"], each["value"])
    best = optimizer.recommend()
    return {
        "next": optimizer.ask(), "recommended": best.design, "mean": best.mean, "std": best.std,
    }  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    made = {}
    for name, setting in SETTINGS.items():
        told = experiments(setting)
        made[name] = {"told": told, "answers": answers(setting, told)}
    lines = [f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in made.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
