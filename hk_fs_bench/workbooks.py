"""Spreadsheets for people to fill in: readable, with lists to choose from, safe against slips."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError


@dataclass(frozen=True)
class Column:
    """A column of a sheet: its width in characters; to `fill` in from `choices` or freely.

    Columns to fill in stand behind all others.
    """

    name: str
    width: int
    fill: bool = False
    choices: Sequence[str] = ()


def write_workbook(
    path: Path,
    readme: Sequence[str],
    sheets: Mapping[str, Sequence[Column]],
    rows: Mapping[str, Sequence[Sequence[Any]]],
) -> None:
    """A workbook with a sheet of instructions and one of rows for each title that has some.

    Only the cells to fill in can be edited; the protection has no password and keeps slips away.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Alignment
    except ImportError:
        raise UserError("spreadsheets need openpyxl: pip install 'hk-fs-bench[data]'") from None
    book = Workbook()
    first = book.active
    first.title = "Read me first"
    first.column_dimensions["A"].width = 110
    for line in readme:
        first.append([line])
        first.cell(first.max_row, 1).alignment = Alignment(wrap_text=True, vertical="top")
    for title, columns in sheets.items():
        if rows[title]:
            _sheet(book.create_sheet(title), columns, rows[title])
    half = path.with_suffix(".part")
    book.save(half)
    half.replace(path)


def _sheet(sheet: Any, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation
    from openpyxl.worksheet.properties import PageSetupProperties

    yellow, grey = PatternFill("solid", "FFF4CC"), PatternFill("solid", "E7E9EC")
    edge = Side(style="thin", color="B8BCC2")
    wrapped = Alignment(wrap_text=True, vertical="top")
    for place, column in enumerate(columns, 1):
        letter = get_column_letter(place)
        sheet.column_dimensions[letter].width = column.width
        head = sheet.cell(1, place, column.name)
        head.font, head.fill, head.alignment = Font(bold=True), grey, wrapped
        if column.choices:
            text = f'"{",".join(column.choices)}"'
            rule = DataValidation("list", formula1=text, allow_blank=True, showErrorMessage=True)
            rule.error = f"Please choose one of: {', '.join(column.choices)}"
            rule.add(f"{letter}2:{letter}{len(rows) + 1}")
            sheet.add_data_validation(rule)
    for number, row in enumerate(rows, 2):
        for place, column in enumerate(columns, 1):
            cell = sheet.cell(number, place)
            if place <= len(row) and not column.fill:
                cell.value = row[place - 1]
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # a text that begins with "=" is no formula
            cell.alignment, cell.border = wrapped, Border(edge, edge, edge, edge)
            if column.fill:
                cell.fill, cell.protection = yellow, Protection(locked=False)
        sheet.row_dimensions[number].height = row_height(columns, row)
    sheet.row_dimensions[1].height = 62
    sheet.freeze_panes = "D2"
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
    sheet.page_setup.orientation, sheet.page_setup.fitToHeight = "landscape", 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)


def row_height(columns: Sequence[Column], row: Sequence[Any]) -> float:
    """Points for the tallest cell: programs don't fit rows to wrapped text on their own."""
    lines = 1
    for column, value in zip(columns, row, strict=False):
        parts = str(value or "").split("\n")
        lines = max(lines, sum(math.ceil(max(1, len(p)) / (column.width * 0.95)) for p in parts))
    return min(409.0, 15.0 * lines + 6)
