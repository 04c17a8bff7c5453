"""Result files of the HTML form and filled-in spreadsheets, as returns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import rubric
from hk_fs_bench.human.options import labels_of, matched
from hk_fs_bench.human.returns import Chosen, Given, Return, Unused, without_email
from hk_fs_bench.human.study import Study
from hk_fs_bench.tables import Fault, Row, read_table, sheet_names, text_of

RESULT, VERSION = "hk-fs-human-result", 1
START, RATINGS = "Start", "Ratings"
_DIMENSIONS = ("accuracy", "clarity")
_YES = ("yes", "y", "x", "✓", "true", "1", "是", "同意", "i agree", "agree")
# A cell of marks that says no; points that a question lacks hold a dash.
_NO_MARK = ("", "-", "–", "—", "no", "n", "0", "false", "否")
_LONGEST = 5000
# No question takes ten days; a larger number is no time.
_DAYS = 864_000


def rater_of(study: Study, text: Any) -> str:
    """The study's spelling of a rater's id; as it came where the study has none such."""
    name = str(text or "").strip()
    ids: list[str] = [*study.raters, *study.settings["withdrawn"]]
    known = {rubric.fold(one): one for one in ids}
    return known.get(rubric.fold(name), without_email(name)[:80])


def comment_of(value: Any) -> str | None:
    """A comment without e-mail addresses, at most 5,000 characters."""
    return without_email(text_of(value) or "")[:_LONGEST] or None


def read_html_result(path: Path, study: Study) -> Return:
    """The JSON file that the HTML form gives.

    Raises:
        UserError: no such file, or of another study, another rubric, or broken as a whole. What
            is wrong with a single rating is kept with it.
    """
    raw = _bytes(path)
    try:
        held = json.loads(raw.decode(_encoding(raw)), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        why = f" ({error.args[0]})" if isinstance(error, _DoubledName) else ""
        raise UserError(
            f"{path.name} is no JSON{why}; ask for the file as the form saved it"
        ) from None
    if not isinstance(held, dict) or held.get("format") != RESULT:
        raise UserError(f"{path.name} is no result of a rating form; it lacks format {RESULT!r}")
    if held.get("version") != VERSION:
        raise UserError(f"{path.name} has version {held.get('version')!r}, this reads {VERSION}")
    _same(path, study, held.get("study"), held.get("rubric"))
    rater = rater_of(study, held.get("rater"))
    returned = Return("expert", "html", path.name, sha256(raw).hexdigest())
    consent = held.get("consent")
    if not (isinstance(consent, dict) and consent.get("given") is True):
        return _refused(returned, rater, "no consent was given")
    batch = held.get("batch")
    questions = held.get("questions")
    if not isinstance(questions, list):
        raise UserError(f"{path.name} has no list of questions; ask for the file again")
    ratings, unused = [], []
    for question in questions:
        found = question.get("ratings") if isinstance(question, dict) else None
        for one in found if isinstance(found, list) else [None]:
            if not isinstance(one, dict) or not isinstance(one.get("candidate"), str):
                unused.append(Unused(path.name, "a rating without a candidate", rater))
                continue
            ratings.append(_from_json(one, question, rater, batch, text_of(held.get("saved_at"))))
    return replace(returned, ratings=ratings, unused=unused)


class _DoubledName(ValueError):
    """An object that says two things under one name; a reader would keep either unseen."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        name = next(n for n, _ in pairs if [m for m, _ in pairs].count(n) > 1)
        raise _DoubledName(f"the name {name[:40]!r} stands twice in an object")
    return held


def _encoding(raw: bytes) -> str:
    """UTF-8, or what Windows' editor calls Unicode, where a pasted result was saved so."""
    return "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"


def _from_json(
    one: Mapping[str, Any], question: Mapping[str, Any], rater: str, batch: Any, saved: str | None
) -> Given:
    faults: list[str] = []
    chosen = {name: _chosen(name, one.get(name), faults) for name in _DIMENSIONS}
    missed = one.get("missed_essential") or []
    if not isinstance(missed, list) or any(type(n) is not int for n in missed):
        faults.append(f"missed_essential is {str(missed)[:40]}, no list of numbers")
        missed = []
    return Given(
        rater=rater,
        candidate=one["candidate"][:40],
        accuracy=chosen["accuracy"],
        clarity=chosen["clarity"],
        missed_essential=missed,
        comment=comment_of(one.get("comment")),
        batch=batch if type(batch) is int else None,
        rated_at=_iso(one.get("rated_at")) or _iso(saved),
        seconds=_seconds(question.get("seconds")),
        where=f"question {str(question.get('position'))[:10]}",
        faults=faults,
    )


def _chosen(name: str, held: Any, faults: list[str]) -> Chosen:
    """What one dimension of a result says; what the rubric does not know becomes a fault."""
    if held is None:
        return Chosen()
    dimension = rubric.load().dimensions[name]
    if not isinstance(held, dict):
        faults.append(f"{name} is {str(held)[:40]}")
        return Chosen()
    level, descriptors = held.get("level"), held.get("descriptors") or []
    if level is not None and not (isinstance(level, str) and level in dimension.levels):
        faults.append(f"{name}: the rubric has no level {str(level)[:40]}")
        level = None
    if not isinstance(descriptors, list):
        descriptors = [descriptors]
    known = [d for d in descriptors if isinstance(d, str) and d in dimension.descriptors]
    if len(known) < len(descriptors):
        strange = [str(d)[:40] for d in descriptors if d not in known]
        faults.append(f"{name}: the rubric has no descriptor {', '.join(strange)}")
    return Chosen(level, known)


def read_xlsx_result(path: Path, study: Study) -> Return:
    """A filled-in workbook of the XLSX form; errors as `read_html_result`."""
    raw = _bytes(path)
    names = sheet_names(path)
    if START not in names or RATINGS not in names:
        raise UserError(
            f"{path.name} has no sheets {START} and {RATINGS}; it is no rating form. An export of "
            "Google Forms is taken as CSV"
        )
    start = _start(path)
    if not {"study", "rubric", "rater", "consent"} <= start.keys():
        raise UserError(f"{path.name}: the hidden column C of {START} is gone; restore the form")
    _same(path, study, start.get("study"), start.get("rubric"))
    rater = rater_of(study, start.get("rater"))
    returned = Return("expert", "xlsx", path.name, sha256(raw).hexdigest())
    if rubric.fold(start.get("consent") or "") not in _YES:
        return _refused(returned, rater, "no consent was given")
    batch = start.get("batch") or ""
    table = read_table(path, RATINGS)
    if not {"candidate", "accuracy.level", "clarity.level"} <= {*table.columns}:
        raise UserError(f"{path.name}: the hidden first row of {RATINGS} is gone; restore the form")
    ratings, notes = [], []
    # The row below the field ids holds the headings that people read.
    for row in table.rows[1:]:
        candidate = text_of(row.cells.get("candidate"))
        if candidate is not None:
            number = int(batch) if batch.isascii() and batch.isdigit() else None
            ratings.append(_from_row(row, rater, candidate[:40], number))
            if isinstance(comment := row.cells.get("comment"), Fault):
                notes.append(f"row {row.number}: the comment is left out, it {comment.what}")
    return replace(returned, ratings=ratings, notes=notes)


def _start(path: Path) -> dict[str, str]:
    """Field id → value of the first sheet: column C names what column B holds."""
    from openpyxl import load_workbook

    sheet = load_workbook(path, data_only=True)[START]
    found = {}
    for _, value, name, *_ in sheet.iter_rows(max_col=4, min_col=1, values_only=True):
        if text_of(name):
            found[str(text_of(name))] = text_of(value) or ""
    return found


def _from_row(row: Row, rater: str, candidate: str, batch: int | None) -> Given:
    faults: list[str] = []

    def marked(prefix: str) -> Iterator[str]:
        for column, cell in row.cells.items():
            if not column.startswith(prefix) or column.endswith(".level"):
                continue
            if isinstance(cell, Fault):
                faults.append(f"{column} {cell.what}")
            elif rubric.fold(text_of(cell) or "") not in _NO_MARK:
                yield column.removeprefix(prefix)

    chosen = {}
    for name, dimension in rubric.load().dimensions.items():
        cell = row.cells.get(f"{name}.level")
        if isinstance(cell, Fault):
            faults.append(f"{name}.level {cell.what}")
            cell = None
        found, rest = matched(text_of(cell) or "", labels_of(dimension.levels))
        if rest or len(found) > 1:
            known = ", ".join(next(iter(one.label.values())) for one in dimension.levels.values())
            faults.append(f"{name}: {text_of(cell)!r} is no level ({known})")
        ids = [d for d in marked(f"{name}.") if d in dimension.descriptors]
        chosen[name] = Chosen(found[0] if len(found) == 1 and not rest else None, ids)
    missed = [int(n) for n in marked("missed.") if n.isascii() and n.isdigit()]
    comment = row.cells.get("comment")
    return Given(
        rater=rater,
        candidate=candidate,
        accuracy=chosen["accuracy"],
        clarity=chosen["clarity"],
        missed_essential=missed,
        comment=None if isinstance(comment, Fault) else comment_of(comment),
        batch=batch,
        where=f"row {row.number}",
        faults=faults,
    )


def _refused(returned: Return, rater: str, reason: str) -> Return:
    """A return of which nothing is kept but the reason."""
    return replace(returned, unused=[Unused(returned.source, reason, rater)])


def _same(path: Path, study: Study, name: Any, version: Any) -> None:
    if name != study.name:
        raise UserError(f"{path.name} is of the study {str(name)[:60]!r}, not of {study.name!r}")
    if str(version) != study.settings["rubric"]["version"]:
        raise UserError(
            f"{path.name} was rated by rubric {str(version)[:20]}, the study has "
            f"{study.settings['rubric']['version']}; levels of two rubrics can't be mixed"
        )


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None


def _seconds(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and 0 <= value < _DAYS else None


def _iso(value: Any) -> str | None:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return str(value)
