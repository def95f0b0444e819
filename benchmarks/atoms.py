"""How many quadrature nodes the default needs: ``python -m benchmarks.atoms``."""

import torch

from airbo.embeddings import Quadrature
from benchmarks import record, table
from benchmarks.accuracy import references
from benchmarks.cases import CASES
from benchmarks.run import progress

N_ATOMS = (3, 6, 12, 24, 48)
N_PAIRS = 2**17
NOT_GAUSSIAN = ("beta", "varying beta", "step chi²", "ring + normal")


def main() -> None:
    torch.set_num_threads(1)
    where = record.provenance()
    cases = [c for c in CASES if c.name in NOT_GAUSSIAN]
    errors: dict[str, dict[str, float]] = {}
    with progress() as bar:
        task = bar.add_task("kernel errors", total=len(cases))
        for reference in references(cases, N_PAIRS, lambda: bar.advance(task)):
            column = errors[reference.label] = {}
            for n in N_ATOMS:
                column[f"n_atoms = {n}"] = reference.error(Quadrature(n))
            column["truth ±"] = reference.doubt

    path = record.store("atoms", where, {"errors": errors})
    names = list(next(iter(errors.values())))
    rows = [[name, *(table.error(column[name]) for column in errors.values())] for name in names]
    text = (
        "# Kernel error against quadrature nodes\n\n"
        "Largest |exp(-MMD²) - truth| between eight designs. Gaussians and their mixtures need no "
        "nodes and are left out.\n\n"
        f"{table.markdown(['', *errors], rows)}\n\n{record.describe(where)}\n"
    )
    record.publish(path, text)


if __name__ == "__main__":
    main()
