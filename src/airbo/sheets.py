"""Tables as people have them: CSV from any spreadsheet, and Excel files; read and written.

Nothing here needs pandas or PyTorch.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

EXCEL = ".xlsx"
_SEPARATORS = (",", ";", "\t")
_LONGEST_CELL = 131_072  # more is no cell, but a quote that nobody closed
_WITH_COMMA = re.compile(r"(?:^|[;\t])[ \"]*[-+]?\d[\d.]*,\d", re.MULTILINE)
_POINT_OR_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")
_RUNS = tuple("=+-@\t\r")
"""How a text begins that a spreadsheet takes for a formula."""


class SheetError(ValueError):
    """A table cannot be read; the message says why."""

    def __init__(self, text: str, line: int | None = None) -> None:
        """Say what is wrong, and in which line."""
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Sheet:
    """The cells of a table, as texts."""

    header: list[str]
    rows: Iterator[tuple[int, list[str]]]
    """The line of every row that is not empty, and its cells; to be gone through once."""
    comma: bool = False
    """Whether its numbers have decimal commas."""
    is_csv: bool = True
    """Whether texts that look like formulas are made harmless; Excel knows what is a text."""

    def text(self, cell: str) -> str:
        """Return a text as it was before it was made harmless."""
        return as_it_was(cell) if self.is_csv else cell

    def number(self, cell: str) -> str:
        """Write a number with a decimal point, as ``float`` reads it.

        Raises:
            ValueError: If it may be two numbers.
        """
        if self.comma and "," in cell:
            return cell.replace(".", "").replace(",", ".")  # 1.234,5
        if self.comma and _POINT_OR_THOUSANDS.fullmatch(cell):
            raise ValueError(
                f"{cell!r} may be {cell.replace('.', '')} or {cell.replace('.', ',')}: this file "
                "has decimal commas"
            )
        return cell


def read_sheet(path: str | Path) -> Sheet:
    """Read a CSV or Excel file.

    Raises:
        SheetError: If it is neither; also while its rows are gone through.
        OSError: If it cannot be read.
    """
    path = Path(path)
    content = path.read_bytes()
    if path.suffix.lower() == EXCEL:
        return _from_excel(content)
    if path.suffix.lower() in (".xls", ".ods", ".xlsb", ".xlsm", ".numbers"):
        raise SheetError(f"{path.name}: save it as Excel ({EXCEL}) or as CSV.")
    return sheet_of(_decoded(content))


def sheet_of(text: str) -> Sheet:
    r"""Read a table from CSV: commas, semicolons or tabs between cells, decimal points or commas.

    >>> sheet = sheet_of("temp;name\n1,5;A\n")
    >>> sheet.header, list(sheet.rows), sheet.number("1,5")
    (['temp', 'name'], [(2, ['1,5', 'A'])], '1.5')
    """
    first, _, rest = text.partition("\n")
    named = re.fullmatch(r"sep=(.)", first.strip("\r"), re.IGNORECASE)  # a line for Excel
    separator = named[1] if named else _separator(text)
    stream = io.StringIO(rest if named else text, newline="")
    reader = csv.reader(stream, delimiter=separator)
    rows = _rows(reader, skipped=1 if named else 0)
    header = next(rows, (1, [""]))[1]
    while header and not header[-1]:
        header.pop()
    comma = separator != "," and _WITH_COMMA.search(text) is not None
    return Sheet([as_it_was(cell) for cell in header], rows, comma)


def _decoded(content: bytes) -> str:
    """Read bytes as UTF-8, as UTF-16 if they say so, else as Windows writes Western Europe."""
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ("utf-16",) if is_wide else ("utf-8-sig", "cp1252"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise SheetError("this is not a text file in UTF-8.", 1)


def _separator(text: str) -> str:
    """Return the sign that divides the header into the most cells."""
    sizes = {}
    for sign in _SEPARATORS:
        reader = csv.reader(io.StringIO(text[: _LONGEST_CELL // 2], newline=""), delimiter=sign)
        try:
            sizes[sign] = len(next(reader, []))
        except csv.Error:
            sizes[sign] = 0
    return max(_SEPARATORS, key=lambda sign: sizes[sign])


def _rows(reader: Any, skipped: int) -> Iterator[tuple[int, list[str]]]:
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_long = "field limit" in str(error)
            what = f"a cell has more than {_LONGEST_CELL:,} characters" if is_long else str(error)
            hint = "; is there a quote that nobody closed?" if is_long else "."
            raise SheetError(f"this is not CSV: {what}{hint}", reader.line_num + skipped) from None
        if any(cell.strip() for cell in cells):
            yield reader.line_num + skipped, [cell.strip() for cell in cells]


# -- texts that a spreadsheet would run


def harmless(text: str) -> str:
    """Keep a spreadsheet from running a text; see ``as_it_was``.

    >>> harmless("=1+1"), as_it_was(harmless("=1+1")), as_it_was(harmless("'=1+1"))
    ("'=1+1", '=1+1', "'=1+1")
    """
    return f"'{text}" if text.lstrip("'").startswith(_RUNS) else text


def as_it_was(cell: str) -> str:
    """Return a text as it was before ``harmless``."""
    is_changed = cell.startswith("'") and cell.lstrip("'").startswith(_RUNS)
    return cell[1:] if is_changed else cell


# -- Excel


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise SheetError(
            "Excel files need openpyxl: pip install 'airbo[excel]'. CSV works without it."
        ) from None
    return openpyxl


def _from_excel(content: bytes) -> Sheet:
    openpyxl = _openpyxl()
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        lines = [[_text(cell) for cell in row] for row in book.worksheets[0].values]
    except Exception as error:  # whatever a damaged file makes the parsers raise
        raise SheetError(f"this is not an Excel file ({error}).", 1) from None
    width = max((i + 1 for line in lines for i, cell in enumerate(line) if cell), default=0)
    numbered = [(n, line[:width]) for n, line in enumerate(lines, 1) if any(line)]
    return Sheet(numbered[0][1] if numbered else [], iter(numbered[1:]), is_csv=False)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime | date):
        return cell.isoformat(" ") if isinstance(cell, datetime) else cell.isoformat()
    return (repr(cell) if isinstance(cell, float) else str(cell)).strip()


def excel_of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Write a table as an Excel file. Texts stay texts, also those that begin like a formula."""
    openpyxl = _openpyxl()
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("experiments")
    sheet.freeze_panes = "A2"

    def cell_of(value: Any, bold: bool = False) -> Any:
        cell = WriteOnlyCell(sheet, value)
        if isinstance(value, str):
            cell.data_type = "s"  # not "f", a formula
        elif isinstance(value, float):
            cell._value = repr(value)  # openpyxl would write 16 digits; some need 17
        if bold:
            cell.font = Font(bold=True)
        return cell

    try:
        sheet.append([cell_of(name, bold=True) for name in header])
        for row in rows:
            sheet.append([cell_of(value) for value in row])
    except IllegalCharacterError as error:
        raise SheetError(f"Excel cannot hold this text: {str(error)[:80]!r}. Use CSV.") from None
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()
