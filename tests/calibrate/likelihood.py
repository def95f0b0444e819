"""How likely the proposals for the logs make rows that they were not fitted to.

``python -m tests.calibrate.likelihood`` writes ``likelihood.csv``: for every log and seed the
held-out log likelihood per value of the proposal, in nats, beside that of the former 22 families.
"""

import csv
from pathlib import Path

from airbo import uncertainty as unc
from tests.calibrate.logs import LOGS, log

TABLE = Path(__file__).parent / "likelihood.csv"
N_SEEDS = 3


def proposal(name: str, seed: int) -> tuple[float, str]:
    """Return likelihood and name of what is proposed: that of the group, where there is one."""
    chosen = [c for c in unc.learn(*log(name, seed)).candidates if c.chosen]
    own = [c for c in chosen if len(c.parameters) > 1] or chosen
    return sum(c.log_likelihood for c in own) / len(own), own[0].name


def rows() -> list[dict[str, str]]:
    """Read the table."""
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Write the table again; the former families stay as they are."""
    former = {(r["log"], r["seed"]): (r["former"], r["former_family"]) for r in rows()}
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["log", "seed", "former", "former_family", "now", "family"])
        for name in LOGS:
            for seed in range(N_SEEDS):
                value, family = proposal(name, seed)
                writer.writerow([name, seed, *former[name, str(seed)], f"{value:.4f}", family])


if __name__ == "__main__":
    main()
