"""What can go wrong in a campaign, in words for its user."""

from collections.abc import Sequence
from dataclasses import dataclass


class CampaignError(Exception):
    """Something that was asked of a campaign is not possible; the message says why."""

    exit_code = 1
    """What the command line ends with."""


@dataclass(frozen=True)
class Mistake:
    """One mistake in a file."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


class FileError(CampaignError):
    """A file has mistakes; all of them are named."""

    exit_code = 3

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        """Name the file and its mistakes, in the order of the lines."""
        self.file = file
        self.mistakes = sorted(mistakes, key=lambda mistake: mistake.line)
        count = "a mistake" if len(self.mistakes) == 1 else f"{len(self.mistakes)} mistakes"
        listed = "\n".join(f"  {mistake}" for mistake in self.mistakes)
        super().__init__(f"{file} has {count}:\n{listed}")


class StorageError(CampaignError):
    """The storage, or another file, cannot be read or written, or belongs to something else."""

    exit_code = 4


class DamageError(StorageError):
    """A storage no longer holds what was written into it."""

    def __init__(self, storage: str, what: str) -> None:
        """Say what is wrong with a storage, and what to do."""
        super().__init__(
            f"{storage} is damaged: {what}. Put a backup in its place if you have one. To get out "
            "what can be read: airbo export --damaged -o rescued.csv."
        )


class AlreadyTold(CampaignError):
    """The experiment has another outcome already."""

    def __init__(self, said: str) -> None:
        """Say what was told, and how to replace it."""
        super().__init__(
            f"{said} --correct (in Python: correct=True) replaces that; undo takes back the last "
            "change."
        )


class Doubtful(CampaignError):
    """Something that was said is possible, but looks like a typing error."""

    def __init__(self, doubts: Sequence[str]) -> None:
        """Say what looks wrong, and how to insist on it."""
        self.doubts = list(doubts)
        between = " " if len(self.doubts) < 3 else "\n"
        said = between.join([*self.doubts, "Nothing was stored."])
        super().__init__(f"{said} If it is right, add --yes (in Python: sure=True).")
