"""Commands in campaigns with very many experiments: bounded time and memory, and a message."""

import pytest

from experiments.speed.many import CASES, COMMANDS, command, prepare

pytestmark = pytest.mark.slow

MOST_SECONDS = {"report": 600}
"""Processor time; a report fits a dozen models, every other command at most two."""
MOST_GIGABYTES = 3.0


@pytest.mark.parametrize("case", CASES)
def test_every_command_answers_in_bounded_time_and_memory(tmp_path, case):
    prepare(tmp_path, case, CASES[case], "journal file")
    found = {name: command(tmp_path, words) for name, words in COMMANDS.items()}
    for name, used in found.items():
        assert used["seconds"] < MOST_SECONDS.get(name, 60), name
        assert used["gigabytes"] < MOST_GIGABYTES, name
    looks_at_a_part = "The model looks at 1,000 of 10,00" in found["recommend"]["note"]
    assert looks_at_a_part == (case == "different designs")
