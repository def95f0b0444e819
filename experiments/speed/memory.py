"""Peak memory of one posterior, in a process of its own: ``python -m experiments.speed.memory``."""

import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from rich.progress import Progress

from experiments.harness.places import ROOT
from experiments.speed.methods import BY_NAME, DEFAULT, METHODS, YARDSTICK
from experiments.speed.posterior import predict
from experiments.subjects.data import observe
from experiments.subjects.uncertainties import BY_NAME as PAPER
from experiments.subjects.uncertainties import VARYING, logged

LIMIT_MB = 4000
"""Memory limit of a process; a posterior that needs more is stopped."""
MANY, FEW = 100_000, 512
N_COMPARED = 512
CASES = {c.name: c for c in (logged(1000, 1), logged(1000, 3), PAPER["beta"], *VARYING)}
LOGGED, LOGGED_3 = list(CASES)[:2]


@dataclass(frozen=True)
class MemorySetting:
    """One posterior whose memory is measured, in a form that another process can read."""

    case: str
    method: str
    n: int
    n_designs: int
    joint: bool

    @property
    def label(self) -> str:
        how = "joint" if self.joint else "t-batch"
        return f"{self.case}, {how}, n = {self.n}, {self.n_designs:,} designs"


def measure(quick: bool, bar: Progress) -> list[dict[str, Any]]:
    """Return memory, time and agreement with small portions, per setting."""
    many = [
        MemorySetting(case, DEFAULT.name, n, MANY, joint)
        for case in ([LOGGED] if quick else [LOGGED, LOGGED_3, "black box 1-D"])
        for n in ([10] if quick or case == LOGGED_3 else [10, 50])
        for joint in ([True] if quick else [False, True])
    ]
    others = (YARDSTICK, BY_NAME["Nystrom(160, 10)"])
    if not quick:
        many += [MemorySetting(LOGGED, m.name, 10, MANY, joint=False) for m in others]
        many += [MemorySetting(LOGGED, YARDSTICK.name, 10, MANY, joint=True)]
    methods = (YARDSTICK, DEFAULT) if quick else METHODS
    few = [MemorySetting("beta", m.name, 10, FEW, joint=False) for m in methods]
    return [in_own_process(s) for s in bar.track([*many, *few], description="memory")]


def in_own_process(setting: MemorySetting) -> dict[str, Any]:
    command = [sys.executable, "-m", "experiments.speed.memory", json.dumps(vars(setting))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{setting.label}, {setting.method}: {done.stderr}")
    return {"label": setting.label, **vars(setting), **json.loads(done.stdout)}


def posterior(setting: MemorySetting) -> dict[str, Any]:
    """Predict once, and return the memory used beyond that of the imports."""
    case, baseline = CASES[setting.case], _status("VmRSS")
    _limit(_status("VmSize") + LIMIT_MB)
    X, Y = observe(case, setting.n, seed=5)
    designs = case.designs(setting.n_designs, seed=200)
    start = time.process_time()
    model = BY_NAME[setting.method].model(case, X, Y).eval()
    predict(model, _shaped(designs[:8], setting.joint))
    cold = time.process_time() - start
    try:
        mean, variance = predict(model, _shaped(designs, setting.joint))
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        return {"megabytes": None, "first_seconds": cold, "seconds": None, "difference": None}
    spent = time.process_time() - start - cold
    peak = _status("VmHWM")
    rows = torch.linspace(0, len(designs) - 1, min(N_COMPARED, len(designs))).long()
    again = predict(model, _shaped(designs[rows], setting.joint))
    differences = [
        (one.flatten() - all_.flatten()[rows]).abs().max().item()
        for one, all_ in zip(again, (mean, variance), strict=True)
    ]
    return {
        "megabytes": peak - baseline,
        "first_seconds": cold,
        "seconds": spent,
        "difference": max(differences),
    }


def _shaped(X: torch.Tensor, joint: bool) -> torch.Tensor:
    return X if joint else X.unsqueeze(-2)


def _status(name: str) -> float:
    """Read megabytes from the record that Linux keeps of this process."""
    with open("/proc/self/status", encoding="ascii") as lines:
        [line] = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1]) / 1024


def _limit(megabytes: float) -> None:
    size = int(megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(posterior(MemorySetting(**json.loads(sys.argv[1])))))
