"""Where a campaign is kept: a file, or a database on a server.

A URL can be printed, because it never holds a password: one that might is refused, and nothing of
it is quoted. The password comes from elsewhere, and only ``to_connect`` gives it out again.
"""

import re
from pathlib import Path
from urllib.parse import quote, quote_plus

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


class StorageURL:
    """The URL of a storage; the password beside it is shown to nobody.

    >>> StorageURL("postgresql://ann@host:5432/lab", password="p@ss/word")
    StorageURL('postgresql://ann@host:5432/lab')
    """

    __slots__ = ("_password", "text")

    def __init__(self, text: str, password: str | None = None) -> None:
        """Take a URL, and the password of the server.

        Raises:
            StorageError: If it is no URL of a storage, or may hold a password.
        """
        is_file = text.startswith(SQLITE) and len(text) > len(SQLITE)
        if not is_file and _SERVER.fullmatch(text) is None:
            got = f", got {text!r}" if _HARMLESS.fullmatch(text) else ""
            raise StorageError(
                "storage must be a URL such as sqlite:///campaign.db or "
                f"postgresql://user@host:5432/database{got}. It must not hold a password, which "
                "others would see: put that into the environment variable AIRBO_STORAGE_PASSWORD, "
                "or into a file that the campaign file names: storage_password_file = "
                '"password.txt".'
            )
        self.text = text
        self._password = _Hidden(password)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"StorageURL({self.text!r})"

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

    def to_connect(self) -> str:
        """Return the URL of a server as SQLAlchemy needs it, with the password."""
        from sqlalchemy.engine import make_url

        url = make_url(self.text)
        if url.drivername == "postgresql":  # the driver that `airbo[postgres]` installs
            url = url.set(drivername="postgresql+psycopg")
        if self._password.value is not None:
            url = url.set(password=self._password.value)
        return url.render_as_string(hide_password=False)

    def is_safe(self, text: str) -> bool:
        """Say whether a text does not hold the password, however that is written."""
        secret = self._password.value
        if not secret:
            return True
        forms = (secret, quote(secret, ""), quote_plus(secret), repr(secret)[1:-1])
        return not any(form in text for form in forms)


class _Hidden:
    """A text that debuggers and tracebacks do not print."""

    __slots__ = ("value",)

    def __init__(self, value: str | None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "***"
