"""Programs that write and pack results, and may be killed on the way.

``python packing.py write FOLDER N_TASKS WRITER`` writes results, each with the name of its writer.
``python packing.py pack FOLDER STEP`` packs, and is killed before that step on the disk.
"""

import itertools
import os
import signal
import sys
from pathlib import Path

from experiments.harness.store import Store
from tests.experiments.toy import Toy

STEPS = ((os, "fsync"), (Path, "replace"), (Path, "unlink"))


def kill_before(step):
    """See to it that this process ends, as in a power cut, before a step on the disk."""
    count = itertools.count()
    for owner, name in STEPS:
        setattr(owner, name, _counted(getattr(owner, name), count, step))


def _counted(real, count, step):
    def call(*args, **kwargs):
        if next(count) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    return call


if __name__ == "__main__":
    what, folder, number, *writer = sys.argv[1:]
    store = Store(Path(folder))
    if what == "write":
        for task in Toy().tasks(int(number)):
            store.write(task, {"value": writer[0]}, {"commit": "abc"})
    else:
        kill_before(int(number))
        store.pack()
