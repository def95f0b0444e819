"""Where a campaign is kept: a URL that cannot be printed with its password.

A text becomes a ``StorageURL`` as soon as it is read, and nothing but ``to_connect`` gives the
password out again. What it prints is made from parts that are known to be harmless; it is not the
text with something taken out.
"""

import re
from pathlib import Path
from urllib.parse import parse_qs, quote, quote_plus, unquote

from airbo.lab.errors import StorageError

SQLITE = "sqlite:///"
SERVERS = ("postgresql",)
LONGEST_NAME = 255
"""Of a file, in bytes: more than this is more than file systems allow."""

PASSWORD_ELSEWHERE = (
    "The URL of a storage must not hold a password: others would see it in the list of processes "
    "and in the file. Leave it out, and put it into the environment variable "
    "AIRBO_STORAGE_PASSWORD, or into a file that the campaign file names: "
    'storage_password_file = "password.txt".'
)
"""What to do with a password that stands on a command line."""

_STRICT = re.compile(
    r"[^:/@?#\s]*@[^@/?#\s]*(/[^?#@]*)?(\?.*)?"  # no password
    r"|[^:/@?#\s]*:[^:/@?#\s]*@[^@/?#\s]*(/[^?#@]*)?(\?[^@]*)?",
    re.S,
)
"""What stands behind ``//`` if no character of a password can be mistaken for another part."""
_PLACE = re.compile(r"([\w.\-]*|\[[0-9A-Fa-f:.]+\])(?::([0-9]+))?(?:/([^?]*))?(?:\?(.*))?", re.S)
_HARMLESS = re.compile(r"[\w.\-]*")
_IN_QUERY = re.compile(r"(?:password|passwd)=(.*)", re.S | re.I)
"""All that follows may be a part of it, if it is not written as the standard wants it."""
_PIECE = 3
"""Length of a piece of a password that is looked for by itself."""


class StorageURL:
    """The URL of a storage, whose password nobody sees.

    >>> url = StorageURL("postgresql://ann:p@ss/word@host:5432/lab")
    >>> url
    StorageURL('postgresql://ann:***@host:5432/lab')
    >>> print(url)
    postgresql://ann:***@host:5432/lab
    """

    __slots__ = ("_given", "_hidden")

    def __init__(self, text: str, password: str | None = None) -> None:
        """Take a URL, and the password where that is kept elsewhere."""
        self._given = _Hidden(text)
        self._hidden = _Hidden(password)

    def __str__(self) -> str:
        if self.is_file:
            return self._text
        scheme, place, user, password = self._parts()
        if place is None:
            return _beginning(self._text)
        host, port, database, query = place.groups()
        shown = [f"{scheme}://"]
        if user is not None:
            shown.append(f"{_shown(unquote(user))}{':***' if password else ''}@")
        shown += [host, f":{port}" if port else ""]
        shown += [f"/{_shown(database)}" if database is not None else "", "?..." if query else ""]
        return "".join(shown)

    def __repr__(self) -> str:
        return f"StorageURL({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageURL) and other._whole == self._whole

    def __hash__(self) -> int:
        return hash(self._whole)

    @property
    def _text(self) -> str:
        return self._given.value or ""

    @property
    def _whole(self) -> tuple[str, str | None]:
        return self._text, self._hidden.value

    @property
    def is_file(self) -> bool:
        """Whether the storage is a file."""
        return self._text.startswith(SQLITE) and len(self._text) > len(SQLITE)

    @property
    def has_password(self) -> bool:
        """Whether there is a password in the URL itself."""
        return not self.is_file and bool(self._secrets(of_url_alone=True))

    def file(self, folder: Path) -> Path | None:
        """Return the file of a storage that is one; relative paths count from ``folder``.

        Raises:
            StorageError: If no file can have this name.
        """
        if not self.is_file:
            return None
        name = self._text.removeprefix(SQLITE).partition("?")[0]
        if not name.isprintable():
            raise StorageError(f"storage names no file: {name!r} has a character that none can.")
        if len(Path(name).name.encode()) > LONGEST_NAME:
            raise StorageError(
                f"storage names no file: {name[:20]!r}... is longer than {LONGEST_NAME} bytes."
            )
        return (folder / name).resolve()

    def to_connect(self) -> str:
        """Return the URL of a server as SQLAlchemy needs it, with the password.

        Raises:
            StorageError: If it is no URL of a server that can be used.
        """
        scheme, place, user, password = self._parts()
        if not scheme.startswith(SERVERS):
            raise StorageError(
                "storage must be a URL such as sqlite:///campaign.db or "
                f"postgresql://user@host/database, got {str(self)!r}."
            )
        if place is None:
            raise StorageError(
                f"The storage {self} is not a valid URL. Write it as "
                "postgresql://user@host:5432/database, with the password elsewhere: "
                "`storage_password_file` names a file that holds it."
            )
        host, port, database, query = place.groups()
        options = parse_qs(query or "", keep_blank_values=True)
        if self._hidden.value is not None:
            password = self._hidden.value
            options = {key: v for key, v in options.items() if key not in ("password", "passwd")}
        from sqlalchemy.engine import URL

        url = URL.create(
            # the driver that `airbo[postgres]` installs, where the URL names none
            "postgresql+psycopg" if scheme == "postgresql" else scheme,
            username=None if user is None else unquote(user),
            password=password,
            host=host.strip("[]") or None,
            port=int(port) if port else None,
            database=None if database is None else unquote(database),
            query={key: tuple(values) for key, values in options.items()},
        )
        return url.render_as_string(hide_password=False)

    def is_safe(self, text: str) -> bool:
        """Say whether a text gives nothing of the password away."""
        return not any(form in text for secret in self._secrets() for form in _forms(secret))

    def _secrets(self, of_url_alone: bool = False) -> list[str]:
        scheme, place, _, password = self._parts()
        found = [password, None if of_url_alone else self._hidden.value]
        query = place.group(4) if place is not None else None
        if behind := _IN_QUERY.search(query or ""):
            found += [behind.group(1), unquote(behind.group(1))]
        if place is None and scheme:
            found.append(self._text.partition(":")[2])
        return [secret for secret in found if secret]

    def _parts(self) -> tuple[str, "re.Match[str] | None", str | None, str | None]:
        """Return the scheme; host, port, database and query; the user; the password.

        A password may hold any character: it ends at the last @. Only a URL without a password may
        have an @ in its query.
        """
        scheme, slashes, rest = self._text.partition("://")
        if not slashes:
            return self._text.partition(":")[0], None, None, None
        strict = _STRICT.fullmatch(rest)
        cut = rest.index("@") if strict else rest.rfind("@")
        place = _PLACE.fullmatch(rest[cut + 1 :])
        if not strict and _IN_QUERY.search(rest[:cut]):
            place = None  # that @ may belong to a password in the query
        if cut < 0:
            return scheme, place, None, self._hidden.value
        user, _, password = rest[:cut].partition(":")
        return scheme, place, user, unquote(password) or self._hidden.value


class _Hidden:
    """A text that debuggers and tracebacks do not print."""

    __slots__ = ("value",)

    def __init__(self, value: str | None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "***"


def _shown(part: str) -> str:
    return part if _HARMLESS.fullmatch(part) else "..."


def _beginning(text: str) -> str:
    """Return as much of something else as cannot be a password."""
    if _HARMLESS.fullmatch(text):
        return text
    scheme, colon, _ = text.partition(":")
    return f"{scheme}:..." if colon and _HARMLESS.fullmatch(scheme) else "..."


def _forms(secret: str) -> list[str]:
    """Return the ways in which a message may write a password."""
    pieces = [piece for piece in re.split(r"[@/:?#&=\s]", secret) if len(piece) >= _PIECE]
    plain = [secret, *pieces]
    return [
        form for p in plain for form in (p, quote(p), quote(p, ""), quote_plus(p), repr(p)[1:-1])
    ]
