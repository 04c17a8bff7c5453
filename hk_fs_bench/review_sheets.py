"""The spreadsheets of a review: questions without keys out, answers in; keys out, verdicts in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.items import LETTERS
from hk_fs_bench.review import NAMES_SOMEBODY, names_somebody, settings
from hk_fs_bench.tables import Fault, Row, Table, read_table, sheet_names, text_of
from hk_fs_bench.workbooks import Column, write_workbook

Entry = Mapping[str, Any]
MCQ, OEQ = "Multiple choice", "Open-ended"
ANSWER, ESSENTIAL = "Your answer", "Had your answer every essential point?"
ARGUMENT, VERDICT, REASON = "Best argument for the strongest wrong option", "Verdict", "Reason"
_YES_NO = ["yes", "no"]


def write_blind(path: Path, entry: Entry, by_id: Mapping[str, Any]) -> None:
    """The questions of a form without anything that tells a key."""
    answers = [*LETTERS, settings()["cannot_tell"]]
    shared = [Column("No.", 6), Column("Item", 11), Column("Question", 62)]
    clause = Column("Clause that you rely on (optional)", 18, fill=True)
    letters = [Column(letter, 26) for letter in LETTERS]
    sheets = {
        MCQ: [*shared, *letters, Column(ANSWER, 10, True, answers), clause],
        OEQ: [*shared, Column(ANSWER, 70, fill=True), clause],
    }
    rows: dict[str, list[list[Any]]] = {MCQ: [], OEQ: []}
    for name in entry["items"]:
        item = by_id[name]
        title = MCQ if hasattr(item, "choices") else OEQ
        options = item.choices if title == MCQ else []
        rows[title].append([len(rows[title]) + 1, name, item.question, *options])
    write_workbook(path, _readme("blind_readme", entry), sheets, rows)


def read_blind(path: Path, entry: Entry, by_id: Mapping[str, Any]) -> dict[str, str | None]:
    """Item → the blind answer, None where there is none yet.

    Raises:
        UserError: rows that are unknown, missing or doubled, answers that are no option.
    """
    allowed = [*LETTERS, settings()["cannot_tell"]]
    found: dict[str, str | None] = {}
    faults: list[str] = []
    for table, row in _rows(path, entry, faults):
        cell = _filled(table, row, ANSWER, faults)
        if cell is not None and hasattr(by_id.get(row.cells["Item"]), "choices"):
            cell = cell.upper().rstrip(".)")
            if cell not in allowed:
                place = table.where(row, ANSWER)
                faults.append(f"{place}: {cell!r} is none of {', '.join(allowed)}")
        found[row.cells["Item"]] = cell
    _raise(path, faults)
    return found


def write_keys(path: Path, entry: Entry, by_id: Mapping[str, Any]) -> None:
    """The same questions with their keys, the blind answers, and columns for the verdict."""
    judged = settings()["judged"]
    shared = [Column("No.", 6), Column("Item", 11), Column("Question", 54)]
    why = [Column("Explanation", 40), Column("References", 14)]
    judge = {name: Column(text, 14, True, _YES_NO) for name, text in judged.items()}
    last = [Column(VERDICT, 10, True, list(settings()["verdicts"])), Column(REASON, 44, fill=True)]
    # An open-ended item has no options to defend.
    sound = [judge[name] for name in judge if name != "distractor"]
    sheets = {
        MCQ: [
            *shared,
            *(Column(letter, 22) for letter in LETTERS),
            Column("You answered", 10),
            Column("Key", 6),
            *why,
            Column("Why the others fail", 44),
            Column("Argue for a wrong option", 11),
            Column(ARGUMENT, 36, fill=True),
            *sound,
            judge["distractor"],
            *last,
        ],
        OEQ: [
            *shared,
            Column("You answered", 44),
            Column("Reference answer", 60),
            Column("Key points (* essential)", 50),
            *why,
            Column(ESSENTIAL, 14, True, _YES_NO),
            *sound,
            *last,
        ],
    }
    rows: dict[str, list[list[Any]]] = {MCQ: [], OEQ: []}
    for name, answer in entry["blind"].items():
        item = by_id[name]
        title = MCQ if hasattr(item, "choices") else OEQ
        row = [len(rows[title]) + 1, name, item.question]
        because = [item.explanation, ", ".join(item.references or [])]
        if title == MCQ:
            notes = (item.distractors or {}).items()
            fails = "\n".join(f"{letter}: {one.why}" for letter, one in notes)
            argue = "required" if name in entry["argue"] else "optional"
            row += [*item.choices, answer, item.answer, *because, fails, argue]
        else:
            points = item.key_points or []
            marked = "\n".join(f"{'*' if p.essential else '-'} {p.text}" for p in points)
            row += [answer, item.reference_answer, marked, *because]
        rows[title].append(row)
    write_workbook(path, _readme("keys_readme", entry), sheets, rows)


def read_keys(path: Path, entry: Entry) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """(place, review) for each row, the review None where there is no verdict yet.

    Raises:
        UserError: rows that are unknown, missing or doubled, cells that contradict each other.
    """
    found: list[tuple[str, dict[str, Any] | None]] = []
    faults: list[str] = []
    for table, row in _rows(path, entry, faults):
        before = len(faults)
        review = _review(table, row, entry, faults)
        if len(faults) == before:
            found.append((table.where(row), review))
    _raise(path, faults)
    yield from found


def _review(table: Table, row: Row, entry: Entry, faults: list[str]) -> dict[str, Any] | None:
    name = row.cells["Item"]
    multiple = name in entry["key"]
    verdicts = list(settings()["verdicts"])
    verdict = _choice(table, row, VERDICT, verdicts, faults)
    if verdict is None:
        return None
    wrong = []
    for judged, text in settings()["judged"].items():
        if judged == "distractor" and not multiple:
            continue
        said = _choice(table, row, text, _YES_NO, faults, needed=True)
        if said == ("yes" if judged == "distractor" else "no"):
            wrong.append(judged)
    argument = _filled(table, row, ARGUMENT, faults) if multiple else None
    if name in entry["argue"] and multiple and argument is None:
        faults.append(f"{table.where(row, ARGUMENT)}: is empty, an argument is required here")
    reason = _filled(table, row, REASON, faults)
    if verdict != "accept" and reason is None:
        faults.append(f"{table.where(row, REASON)}: is empty, {verdict} needs a reason")
    if verdict == "accept" and wrong:
        what = f"accepted, but faults are marked: {', '.join(wrong)}"
        faults.append(f"{table.where(row, VERDICT)}: {what}; revise or reject, or mend the marks")
    answer = entry["blind"][name]
    if multiple:
        right = answer == entry["key"][name]
    else:
        right = _choice(table, row, ESSENTIAL, _YES_NO, faults, needed=True) == "yes"
    return {
        "item": name,
        "item_sha256": entry["items"][name],
        "role": entry["role"],
        "kind": "expert",
        "form": entry["label"],
        "blind_answer": answer,
        "blind_correct": right,
        "verdict": verdict,
        "faults": wrong,
        "argument": argument,
        "reason": reason,
    }


def _rows(path: Path, entry: Entry, faults: list[str]) -> Iterator[tuple[Table, Row]]:
    """The rows of the form's items; what is unknown, doubled or missing becomes a fault."""
    seen: set[str] = set()
    for title in sheet_names(path):
        if title not in (MCQ, OEQ):
            continue
        table = replace(read_table(path, title), sheet=title)
        for row in table.rows:
            name = row.cells.get("Item")
            name = "" if isinstance(name, Fault) else text_of(name) or ""
            if name not in entry["items"]:
                faults.append(f"{table.where(row, 'Item')}: {name!r} is no item of this form")
            elif name in seen:
                faults.append(f"{table.where(row, 'Item')}: {name} stands here twice")
            else:
                seen.add(name)
                yield table, Row(row.number, {**row.cells, "Item": name})
    if lost := [name for name in entry["items"] if name not in seen]:
        faults.append(f"{path.name}: rows of {', '.join(lost[:5])} are missing")


def _filled(table: Table, row: Row, column: str, faults: list[str]) -> str | None:
    if column not in table.columns:
        faults.append(f"{table.where(row)}: column {column!r} is gone")
        return None
    value = row.cells.get(column)
    if isinstance(value, Fault):
        faults.append(f"{table.where(row, column)}: {value.what}")
        return None
    text = text_of(value)
    # Here, because an answer can't be mended once the keys are out.
    if names_somebody(text):
        faults.append(f"{table.where(row, column)}: {NAMES_SOMEBODY}")
        return None
    return text


def _choice(
    table: Table,
    row: Row,
    column: str,
    choices: Sequence[str],
    faults: list[str],
    needed: bool = False,
) -> str | None:
    text = _filled(table, row, column, faults)
    if text is None and not needed:
        return None
    folded = (text or "").casefold().rstrip(".")
    if folded not in choices:
        what = "is empty" if text is None else f"{text!r} is none of {', '.join(choices)}"
        faults.append(f"{table.where(row, column)}: {what}")
        return None
    return folded


def _raise(path: Path, faults: Sequence[str]) -> None:
    if faults:
        raise UserError(f"{path.name}: {len(faults)} faults; mend them in the sheet", faults)


def _readme(text: str, entry: Entry) -> list[str]:
    role = settings()["roles"][entry["role"]]
    article = "an" if role[0] in "aeiou" else "a"
    filled: str = settings()[text].format(role=f"{article} {role}", form=entry["label"])
    return filled.splitlines()
