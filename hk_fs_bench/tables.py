"""Rows of a CSV, XLSX, JSON or JSONL file as people really make them, with the place of each cell.

A cell that can't be trusted (a formula, part of a merged block, a date that a spreadsheet made of
"1/2") is kept as a `Fault`: it matters only to who uses its column.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError

FORMATS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".json", ".jsonl")
_MAX_CELL = 1_000_000


@dataclass(frozen=True)
class Fault:
    """What is wrong with a cell, and how to mend it."""

    what: str


@dataclass(frozen=True)
class Row:
    """One row: its number as the user's program shows it, and cells by column name."""

    number: int
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A file's rows in order; empty rows are left out. `notes` says what had to be guessed."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: list[str] = field(default_factory=list)
    sheet: str | None = None

    def where(self, row: Row, column: str | None = None) -> str:
        """The place, for a message: "set.csv row 7, column Answer"."""
        sheet = f", sheet {self.sheet}," if self.sheet else ""
        place = f"{self.name}{sheet} row {row.number}"
        return f"{place}, column {column}" if column else place


def read_table(path: Path, sheet: str | None = None, encoding: str | None = None) -> Table:
    """Read a table; the first row of a CSV or XLSX file that isn't empty names the columns.

    Args:
        sheet: the sheet of an XLSX file; needed where several hold something.
        encoding: of a text file that isn't UTF-8, as "big5".

    Raises:
        UserError: a file that can't be read as its name says, no or doubled column names.
    """
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise UserError(f"{path.name}: no format of {', '.join(FORMATS)}; save it as one of these")
    if kind in (".xlsx", ".xlsm"):
        return _table(path.name, _xlsx_rows(path, sheet), [])
    text, notes = _decode(path, encoding)
    if kind in (".json", ".jsonl"):
        return _objects(path.name, text, kind == ".jsonl", notes)
    return _table(path.name, _csv_rows(path.name, text), notes)


def read_cells(
    path: Path, encoding: str | None = None
) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The numbered rows of a CSV file as they stand, and notes; columns may share a name.

    Raises:
        UserError: as `read_table`.
    """
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    text, notes = _decode(path, encoding)
    return list(_csv_rows(path.name, text)), notes


def text_of(value: Any) -> str | None:
    """A cell as text without outer blanks: 3.0 is "3", an empty cell None."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    # Spreadsheets write a carriage return inside a cell as _x000D_.
    text = "" if value is None else str(value).replace("_x000D_", "")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.strip("\ufeff\u200b \t\n\xa0") or None


def _decode(path: Path, encoding: str | None = None) -> tuple[str, list[str]]:
    raw = path.read_bytes()
    if encoding is not None:
        try:
            return raw.decode(encoding), []
        except LookupError:
            raise UserError(f"{encoding} is no encoding; big5 and cp1252 are") from None
        except UnicodeError as error:
            raise UserError(f"{path.name} is not {encoding} throughout: {error}") from None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace"), ["read as UTF-16"]
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        try:
            text = raw.decode("cp1252")
        except UnicodeDecodeError as worse:
            line = raw.count(b"\n", 0, worse.start) + 1
            raise UserError(
                f"{path.name} line {line}: neither UTF-8 nor Windows-1252; save it as UTF-8"
            ) from None
        return text, [
            f"no UTF-8 (line {line}), read as Windows-1252: check accents and signs, "
            "or name its encoding"
        ]


def _csv_rows(name: str, text: str) -> Iterator[tuple[int, list[Any]]]:
    if "\0" in text:
        raise UserError(f"{name} holds NUL bytes, it is no text table; save it as CSV in UTF-8")
    head = next((line for line in text.splitlines() if line.strip(" ,;\t")), "")
    outside = re.sub(r'"[^"]*"', "", head)
    delimiter = max(",;\t|", key=outside.count)
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"{name} row {number + 1} (line {reader.line_num}): {error}; "
                "are the quotes round a cell closed, and those inside it doubled?"
            ) from None
        number += 1
        yield number, cells


def sheet_names(path: Path) -> list[str]:
    """The sheets of an XLSX file, in order."""
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    return list(_workbook(path).sheetnames)


def _workbook(path: Path) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise UserError("XLSX files need openpyxl: pip install 'hk-fs-bench[data]'") from None
    try:
        return load_workbook(path)
    except Exception as error:
        # openpyxl lets whatever zipfile, XML and its own readers raise through.
        raise UserError(
            f"{path.name} can't be read as XLSX ({type(error).__name__}: {error}); is it "
            "password-protected or of the old .xls kind? Save it as .xlsx without a password"
        ) from None


def _xlsx_rows(path: Path, sheet: str | None) -> Iterator[tuple[int, list[Any]]]:
    book = _workbook(path)
    filled = [one for one in book.worksheets if one.max_row > 1 or one["A1"].value is not None]
    names = ", ".join(one.title for one in filled)
    if sheet is not None:
        filled = [one for one in filled if one.title == sheet]
    if len(filled) != 1:
        what = "no sheet" if sheet is not None or not filled else "several sheets"
        raise UserError(f"{path.name} has {what} {sheet or ''}; name one of: {names or 'none'}")
    merged: dict[tuple[int, int], str] = {}
    for block in filled[0].merged_cells.ranges:
        # A title across its row is harmless: its other cells are empty.
        if block.min_row != block.max_row:
            for r in range(block.min_row, block.max_row + 1):
                for c in range(block.min_col, block.max_col + 1):
                    merged[r, c] = str(block)
    for cells in filled[0].iter_rows():
        yield cells[0].row, [_cell(cell, merged.get((cell.row, cell.column))) for cell in cells]


def _cell(cell: Any, block: str | None) -> Any:
    value = cell.value
    if block:
        return Fault(f"is part of the merged cells {block}; unmerge them and fill each cell")
    if value is None:
        return None
    if cell.data_type == "f":
        return Fault("is a formula; paste its value instead")
    if cell.data_type == "e":
        return Fault(f"holds the error {value}")
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return Fault(f"was made a date ({value}) by the spreadsheet; format it as text")
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in cell.number_format:
        return f"{value * 100:g}%"
    return value


def _table(name: str, rows: Iterator[tuple[int, list[Any]]], notes: list[str]) -> Table:
    columns: list[str] | None = None
    found: list[Row] = []
    for number, cells in rows:
        if all(not isinstance(c, Fault) and text_of(c) is None for c in cells):
            continue
        if columns is None:
            columns = [_heading(name, number, cell) for cell in cells]
            doubled = [c for c, n in Counter(filter(None, columns)).items() if n > 1]
            if doubled:
                raise UserError(f"{name} row {number}: two columns are called {doubled[0]}")
            continue
        extra = [c for c in cells[len(columns) :] if isinstance(c, Fault) or text_of(c)]
        if extra:
            raise UserError(
                f"{name} row {number} has {len(cells)} cells, the head has {len(columns)}; "
                "is a cell with the delimiter in it not quoted?"
            )
        named = zip(columns, cells, strict=False)
        found.append(Row(number, {column: cell for column, cell in named if column}))
    if columns is None:
        raise UserError(f"{name} is empty")
    return Table(name, [column for column in columns if column], found, notes)


def _heading(name: str, number: int, cell: Any) -> str:
    if isinstance(cell, Fault):
        raise UserError(f"{name} row {number}: a column's name {cell.what}")
    return " ".join((text_of(cell) or "").split())


def _objects(name: str, text: str, lines: bool, notes: list[str]) -> Table:
    if lines:
        from hk_fs_bench.items import jsonl_rows

        objects = list(jsonl_rows(text.encode("utf-8", "surrogatepass"), name))
    else:
        objects = list(enumerate(_json_list(name, text), 1))
    rows = []
    for number, value in objects:
        if not isinstance(value, dict):
            raise UserError(f"{name} item {number}: an object is expected, got {str(value)[:40]}")
        rows.append(Row(number, dict(_flat(value))))
    if not rows:
        raise UserError(f"{name} is empty")
    return Table(name, list(dict.fromkeys(key for row in rows for key in row.cells)), rows, notes)


def _json_list(name: str, text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: no JSON ({error})") from None
    if isinstance(value, dict):
        lists = {key: inner for key, inner in value.items() if isinstance(inner, list)}
        if len(lists) != 1:
            raise UserError(f"{name}: a list of objects is expected, or an object with one list")
        (value,) = lists.values()
    if not isinstance(value, list):
        raise UserError(f"{name}: a list of objects is expected")
    return value


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested objects as columns with dotted names."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner
