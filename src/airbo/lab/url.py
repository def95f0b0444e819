"""Where a campaign is kept: a file, or a database on a server.

A URL can be printed, because it never holds a password: one that might is refused, and nothing of
it is quoted. airbo knows no passwords. PostgreSQL's own library finds them, in the environment
variable ``PGPASSWORD`` or in the file ``~/.pgpass``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from airbo.lab.errors import StorageError

SQLITE = "sqlite:///"
LONGEST_NAME = 255
"""Of a file, in bytes: more than this is more than file systems allow."""
_SERVER = re.compile(
    r"postgresql(\+\w+)?://([\w.%-]+@)?([\w.-]+|\[[0-9A-Fa-f:.]+\])?(:\d{1,5})?(/[\w.%-]*)?"
    r"(\?(?!.*passw)[\w.=&%,-]*)?",
    re.ASCII | re.IGNORECASE,
)
"""User, host, port, database and options; a colon before the @ would be a password."""
_HARMLESS = re.compile(r"(?!.*passw)(\w+:/+)?[\w./\\-]*", re.IGNORECASE)


@dataclass(frozen=True)
class StorageURL:
    """The URL of a storage.

    >>> str(StorageURL("postgresql://ann@host:5432/lab"))
    'postgresql://ann@host:5432/lab'
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse what is no URL of a storage, or may hold a password."""
        if not (self.is_file and len(self.text) > len(SQLITE)) and not _SERVER.fullmatch(self.text):
            got = f", got {self.text!r}" if _HARMLESS.fullmatch(self.text) else ""
            raise StorageError(
                "storage must be a URL such as sqlite:///campaign.db or "
                f"postgresql://user@host:5432/database{got}. It must not hold a password, which "
                "others would see: put that into PostgreSQL's own file ~/.pgpass, or into the "
                "environment variable PGPASSWORD."
            )

    def __str__(self) -> str:
        return self.text

    @property
    def is_file(self) -> bool:
        """Whether the storage is a file."""
        return self.text.startswith(SQLITE)

    def file(self, folder: Path) -> Path | None:
        """Return the file of a storage that is one; relative paths count from ``folder``.

        Raises:
            StorageError: If no file can have this name.
        """
        if not self.is_file:
            return None
        name = self.text.removeprefix(SQLITE).partition("?")[0]
        if not name.isprintable():
            raise StorageError(f"storage names no file: {name!r} has a character that none can.")
        if len(Path(name).name.encode()) > LONGEST_NAME:
            raise StorageError(
                f"storage names no file: {name[:20]!r}... is longer than {LONGEST_NAME} bytes."
            )
        return (folder / name).resolve()
