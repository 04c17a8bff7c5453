"""A form as a workbook, for raters who can't or won't use the page.

Row and column ids stand in hidden cells, so that what comes back is read by id whatever the
headings say. Only cells to fill in can be edited; texts stay texts even where they look like
formulas.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.human.form_content import Asked, Batch, clauses, page_yaml, say
from hk_fs_bench.human.rubric import LANGUAGES, Dimension, Texts
from hk_fs_bench.human.statement import Statement
from hk_fs_bench.workbooks import Column, row_height

START, RATINGS, EXAMPLES = "Start", "Ratings", "Examples"
MARK = "x"
# What XML can't hold: control characters, half pairs, two code points that are no characters.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_DATED = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")
# Characters that a cell holds.
_CELL = 32_767


@dataclass(frozen=True)
class _Field:
    """A column of the sheet of ratings: its id, its look, and whether it is for programs alone."""

    id: str
    column: Column
    hidden: bool = False


def workbook(batch: Batch, statement: Statement) -> bytes:
    """The workbook of a batch."""
    try:
        from openpyxl import Workbook
    except ImportError:
        raise UserError("spreadsheets need openpyxl: pip install 'hk-fs-bench[human]'") from None
    book = Workbook()
    _start(book.active, batch, statement)
    _examples(book.create_sheet(EXAMPLES))
    _ratings(book.create_sheet(RATINGS), batch)
    held = io.BytesIO()
    book.save(held)
    return _undated(held.getvalue())


def _undated(book: bytes) -> bytes:
    """The workbook without the time of its making: the same batch gives the same file."""
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as made, zipfile.ZipFile(held, "w") as out:
        for name in made.namelist():
            part = made.read(name)
            if name == "docProps/core.xml":
                part = _DATED.sub(rb"\g<1>2000-01-01T00:00:00Z", part)
            # Such an entry bears no date but the format's first, 1 January 1980.
            out.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return held.getvalue()


def _both(key: str, **values: object) -> str:
    return "\n".join(say(key, language, **values) for language in LANGUAGES)


def _join(texts: Texts) -> str:
    return "\n".join(dict.fromkeys(texts[language] for language in LANGUAGES))


def _start(sheet: Any, batch: Batch, statement: Statement) -> None:
    """What the rater must know, the consent to fill in, and what the form is."""
    sheet.title = START
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 34, 90
    sheet.column_dimensions["C"].hidden = True
    rows: list[tuple[str, str, str]] = [(_join(statement.details["title"]), "", "")]
    rows += [("", _both("statement_intro"), "")]
    rows += [(_join(part["heading"]), _join(part["text"]), "") for part in statement.parts]
    rows += [(_both("consent_question"), "", "consent")]
    rows += [("", _both("sheet_consent"), "")]
    steps = page_yaml("guide.yaml")["steps"]
    rows += [(_both("guide_title"), "\n".join([*steps["en"], *steps["zh-Hant"]]), "")]
    held = batch.rubric
    rows += [(_join(d.label), _join(_choices(d)), "") for d in held.dimensions.values()]
    rows += [("", _join(held.rule), ""), ("", _both("sheet_help"), "")]
    rows += [(_both("send_sheet"), _join(statement.details["return_to"]), "")]
    rows += [
        ("study", batch.study, "study"),
        ("rubric", held.version, "rubric"),
        ("rater", batch.rater, "rater"),
        ("batch", str(batch.number), "batch"),
        ("statement", statement.version, "statement"),
    ]
    widths = [Column("", 34), Column("", 90)]
    for number, row in enumerate(rows, 1):
        for place, value in enumerate(row, 1):
            _text(sheet, number, place, value)
        sheet.row_dimensions[number].height = row_height(widths, row[:2])
        if row[2] == "consent":
            _to_fill(sheet, number, 2)
            _list(sheet, f"B{number}", ["yes"])
    _protect(sheet)


def _examples(sheet: Any) -> None:
    columns = [Column(say(key, "en"), 60) for key in ("sheet_question", "reference")]
    columns += [Column(say("example_answer", "en"), 50), Column(say("example_rating", "en"), 60)]
    rows: list[list[str]] = [[column.name for column in columns]]
    for one in page_yaml("guide.yaml")["examples"]:
        points = "\n".join(f"{n}. {p}" for n, p in enumerate(one["essential_points"], 1))
        rating = "\n".join([*one["rating"]["en"], *one["rating"]["zh-Hant"]])
        given = f"{one['reference_answer']}\n\n{say('points', 'en')}:\n{points}"
        rows.append([one["question"], given, one["candidate"], rating])
    for number, row in enumerate(rows, 1):
        for place, value in enumerate(row, 1):
            sheet.column_dimensions[_letter(place)].width = columns[place - 1].width
            _text(sheet, number, place, value, bold=number == 1)
        sheet.row_dimensions[number].height = row_height(columns, row)
    _protect(sheet)


def _fields(batch: Batch) -> list[_Field]:
    most = max(len(one.question.essential_points) for one in batch.asked)
    found = [
        _Field("position", Column(_both("sheet_number"), 9)),
        _Field("item_id", Column("item_id", 12), hidden=True),
        _Field("candidate", Column("candidate", 12), hidden=True),
        _Field("question", Column(_both("sheet_question"), 44)),
        _Field("essential_points", Column(_both("points"), 36)),
        _Field("reference_answer", Column(_both("reference"), 50)),
        _Field("number", Column(_both("sheet_answer"), 9)),
        _Field("answer", Column(_both("example_answer"), 64)),
    ]
    for number in range(1, most + 1):
        column = Column(_both("sheet_missed", n=number), 11, True, [MARK])
        found.append(_Field(f"missed.{number}", column))
    for dimension in batch.rubric.dimensions.values():
        found += _dimension(dimension)
    found.append(_Field("comment", Column(_both("sheet_comment"), 40, True)))
    return found


def _dimension(dimension: Dimension) -> Iterator[_Field]:
    levels = [one.label[name] for name in LANGUAGES for one in dimension.levels.values()]
    heading = f"{_join(dimension.label)}\n{_join(dimension.about)}"
    yield _Field(f"{dimension.id}.level", Column(heading, 24, True, levels))
    for one in dimension.descriptors.values():
        named = {x: f"{dimension.label[x]}: {one.label[x]}" for x in LANGUAGES}
        yield _Field(f"{dimension.id}.{one.id}", Column(_join(named), 15, True, [MARK]))


def _choices(dimension: Dimension) -> Texts:
    """Levels and descriptors with their explanations, a line each."""
    both = [*dimension.levels.values(), *dimension.descriptors.values()]
    return {x: "\n".join(f"{one.label[x]}: {one.about[x]}" for one in both) for x in LANGUAGES}


def _ratings(sheet: Any, batch: Batch) -> None:
    """Hidden ids, headings, then a row for each answer."""
    fields = _fields(batch)
    columns = [one.column for one in fields]
    rows = [row for one in batch.asked for row in _rows(one)]
    for place, one in enumerate(fields, 1):
        dimension = sheet.column_dimensions[_letter(place)]
        dimension.width, dimension.hidden = one.column.width, one.hidden
        _text(sheet, 1, place, one.id)
        _text(sheet, 2, place, one.column.name, bold=True)
        if one.column.choices:
            end = len(rows) + 2
            _list(sheet, f"{_letter(place)}3:{_letter(place)}{end}", one.column.choices)
    sheet.row_dimensions[1].hidden = True
    sheet.row_dimensions[2].height = 110
    for number, (row, points) in enumerate(rows, 3):
        for place, one in enumerate(fields, 1):
            if place <= len(row):
                _text(sheet, number, place, row[place - 1])
            elif one.id.startswith("missed.") and int(one.id[7:]) > points:
                _no_such(sheet, number, place)
            else:
                _to_fill(sheet, number, place)
        sheet.row_dimensions[number].height = row_height(columns, row)
    sheet.freeze_panes = "D3"
    _protect(sheet)


def _rows(asked: Asked) -> Iterator[tuple[list[str], int]]:
    question = asked.question
    named = clauses(question.references)
    points = "\n".join(f"{n}. {p}" for n, p in enumerate(question.essential_points, 1))
    for number, answer in enumerate(asked.answers, 1):
        row = [str(asked.screen.position), question.item_id, answer.candidate]
        row += [f"{question.question}\n[{named}]" if named else question.question, points]
        row += [question.reference_answer, str(number)]
        row += [answer.answer if answer.answer.strip() else _both("empty_answer")]
        yield row, len(question.essential_points)


# ---- Cells


def _letter(place: int) -> str:
    from openpyxl.utils import get_column_letter

    letter: str = get_column_letter(place)
    return letter


def _text(sheet: Any, row: int, place: int, value: str, bold: bool = False) -> None:
    """A text: never a formula, without the characters that a workbook can't hold."""
    from openpyxl.styles import Alignment, Font

    cell = sheet.cell(row, place)
    value = _NO_XML.sub("\ufffd", value)
    if len(value) > _CELL:
        value = value[: _CELL - 100] + "\n" + _both("sheet_cut")
    cell.value = value or None
    if cell.value is not None:
        cell.data_type = "s"
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    cell.font = Font(bold=bold)


def _to_fill(sheet: Any, row: int, place: int) -> None:
    from openpyxl.styles import Alignment, Border, PatternFill, Protection, Side

    cell = sheet.cell(row, place)
    edge = Side(style="thin", color="B8BCC2")
    cell.fill, cell.protection = PatternFill("solid", "FFF4CC"), Protection(locked=False)
    cell.border = Border(edge, edge, edge, edge)
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    # What is typed stays text too, as a comment that begins with "=".
    cell.number_format = "@"


def _no_such(sheet: Any, row: int, place: int) -> None:
    """A cell that stays empty: whatever stood in it would be read as a mark."""
    from openpyxl.styles import PatternFill

    sheet.cell(row, place).fill = PatternFill("solid", "D5D8DD")


def _list(sheet: Any, cells: str, choices: Sequence[str]) -> None:
    from openpyxl.worksheet.datavalidation import DataValidation

    rule = DataValidation("list", formula1=f'"{",".join(choices)}"', allow_blank=True)
    rule.showErrorMessage = True
    rule.error = f"Please choose one of: {', '.join(choices)}"[:255]
    rule.add(cells)
    sheet.add_data_validation(rule)


def _protect(sheet: Any) -> None:
    """Against slips: no password. Columns and rows may be resized."""
    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
