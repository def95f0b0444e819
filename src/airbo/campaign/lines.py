"""Where the keys of a TOML file stand."""

import re

Path = tuple[str | int, ...]

_KEY = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')


class Lines:
    r"""Line numbers of tables and keys in a text that is valid TOML.

    Keys inside inline tables and arrays stand where the outer key begins.

    >>> lines = Lines("name = 'a'\n[[parts]]\n[[parts]]\nsize = 3")
    >>> lines.of("parts", 1, "size"), lines.of("parts", 1, "weight"), lines.of("unknown")
    (4, 3, 1)
    """

    def __init__(self, text: str) -> None:
        self._found: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        table: Path = ()
        rest: _Value | None = None
        for number, line in enumerate(text.splitlines(), start=1):
            if rest is not None:  # a value that began on a line above
                rest.read(line)
            elif line.lstrip().startswith("["):
                table = self._header(line.strip(), number)
            elif (key := _key(line)) is not None:
                names, end = key
                self._note(table, names, number)
                rest = _Value()
                rest.read(line[end:].lstrip().removeprefix("="))
            if rest is not None and not rest.is_open:
                rest = None

    def of(self, *path: str | int) -> int:
        """Return the line of a key, or of the nearest table around it; 1 if there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._found:
                return self._found[path[:length]]
        return 1

    def _header(self, line: str, number: int) -> Path:
        is_array = line.startswith("[[")
        names, _ = _key(line.lstrip("[")) or ([], 0)
        path: Path = ()
        for name in names[:-1]:
            path = self._entry((*path, name))
        path = (*path, *names[-1:])
        if is_array:
            self._found.setdefault(path, number)
            self._counts[path] = self._counts.get(path, 0) + 1
            path = self._entry(path)
        self._note((), list(path), number)
        return path

    def _entry(self, path: Path) -> Path:
        """Return the path of the last table of an array, or the path as it is."""
        return (*path, self._counts[path] - 1) if path in self._counts else path

    def _note(self, table: Path, names: list[str | int], number: int) -> None:
        for length in range(1, len(names) + 1):
            self._found.setdefault((*table, *names[:length]), number)


class _Value:
    """Follows a value over lines, until all its brackets and strings are closed."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""  # the three quotes that end a string over several lines

    @property
    def is_open(self) -> bool:
        return bool(self._depth or self._quote)

    def read(self, line: str) -> None:
        position = 0
        while position < len(line):
            if self._quote:
                position = self._inside_string(line, position)
            elif line.startswith(('"""', "'''"), position):
                self._quote = line[position : position + 3]
                position += 3
            elif string := _STRING.match(line, position):
                position = string.end()
            elif line[position] == "#":
                return
            else:
                self._depth += (line[position] in "[{") - (line[position] in "]}")
                position += 1

    def _inside_string(self, line: str, position: int) -> int:
        if self._quote == '"""' and line[position] == "\\":
            return position + 2
        if line.startswith(self._quote, position):
            self._quote = ""
            return position + 3
        return position + 1


def _key(line: str) -> tuple[list[str | int], int] | None:
    """Read a key, dotted or not, at the beginning of a line; return its parts and where it ends."""
    parts: list[str | int] = []
    position = 0
    while found := _KEY.match(line, position):
        parts.append(next(group for group in found.groups() if group is not None))
        position = found.end()
        if not line.startswith(".", position):
            return parts, position
        position += 1
    return None
