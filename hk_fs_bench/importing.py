"""A table of somebody else's questions → an edition that every task and command can run.

A mapping (YAML) says which column is which field; `import_mapping.py` defines it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench import items
from hk_fs_bench.errors import UserError
from hk_fs_bench.manifest import write_edition, write_manifest
from hk_fs_bench.tables import Fault, Row, Table, read_table, text_of

if TYPE_CHECKING:
    from hk_fs_bench.import_mapping import ImportMapping

LETTERS = items.LETTERS
_Read = tuple[Row, dict[str, Any]]
_LABEL = re.compile(r"\s*\(?(?:option\s+)?([A-Da-d])\s*[).:\]\-–]\s*(?=\S)|\s*\(([A-Da-d])\)\s*")
_TRUE, _FALSE = {"yes", "true", "y", "1"}, {"no", "false", "n", "0"}


@dataclass(frozen=True)
class Imported:
    """What an import wrote: the split, its number of items, and what had to be decided."""

    split: str
    count: int
    notes: list[str]


class _Bad(Exception):
    """A fault of one cell: (column, message)."""


def import_file(path: Path, mapping: ImportMapping, out: Path) -> Imported:
    """Write the items of `path` as a split of the edition `out`, with its manifest.

    Raises:
        UserError: faulty rows, all of them in `details`; the split exists already. Nothing is
            written then.
    """
    split = f"{mapping.type}/{mapping.split}"
    if (out / "data" / f"{split}.jsonl").exists():
        raise UserError(f"{out} has data/{split}.jsonl already; delete it, or name another folder")
    table = read_table(path, mapping.sheet, mapping.encoding)
    notes = list(table.notes)
    _check_columns(table, mapping)
    rows, names, faults = [], [], []
    for row in table.rows:
        try:
            names.append((row, _id(row, mapping, notes)))
            rows.append((row, {"id": names[-1][1], **_fields(row, mapping, notes)}))
        except _Bad as bad:
            column, message = bad.args
            faults.append(f"{table.where(row, column)}: {message}")
    faults += _doubled(table, names, mapping, out)
    faults += _invalid(table, rows, mapping)
    if faults:
        raise UserError(f"{table.name}: {len(faults)} faults, nothing was written", faults)
    write_edition(out, {split: [item for _, item in rows]})
    write_manifest(out, mapping.version, profile="any")
    return Imported(split, len(rows), list(dict.fromkeys(notes)))


def _check_columns(table: Table, mapping: ImportMapping) -> None:
    lost = [column for column in mapping.columns_used() if column not in table.columns]
    if lost:
        raise UserError(
            f"{table.name} has no column {', '.join(map(repr, lost))} that the mapping names; "
            f"it has {', '.join(map(repr, table.columns))}"
        )
    if not table.rows:
        raise UserError(f"{table.name} has a head and no rows")


def _fields(row: Row, mapping: ImportMapping, notes: list[str]) -> dict[str, Any]:
    """The fields of an item but for its id."""
    item: dict[str, Any] = {"question": _required(row, mapping.columns.question)}
    if mapping.type == "mcq":
        item["choices"], labelled = _choices(row, mapping)
        item["answer"] = _key(row, mapping, item["choices"])
        if labelled:
            notes.append("labels such as “A)” were cut from the options; the prompt sets its own")
    else:
        item["reference_answer"] = _required(row, mapping.columns.reference_answer or "")
    for name, column in mapping.optional_columns().items():
        value = _optional(row, name, column, mapping)
        if value is not None:
            item[name] = value
    return item | {k: v for k, v in mapping.constants.items() if k not in item}


def _cell(row: Row, column: str) -> Any:
    value = row.cells.get(column)
    if isinstance(value, Fault):
        raise _Bad(column, value.what)
    return value


def _required(row: Row, column: str) -> str:
    value = _cell(row, column)
    if isinstance(value, list | dict):
        raise _Bad(column, "holds a list, a text is expected")
    text = text_of(value)
    if text is None:
        raise _Bad(column, "is empty")
    return text


def _id(row: Row, mapping: ImportMapping, notes: list[str]) -> str:
    """The id in the form of the format: letters, digits, dot, dash, underscore."""
    text = _required(row, mapping.columns.id)
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    if not slug:
        raise _Bad(mapping.columns.id, f"{text!r} has no letter or digit to make an id of")
    if slug != text:
        notes.append("signs that an id can't hold were made dashes")
    return slug[:80]


def _choices(row: Row, mapping: ImportMapping) -> tuple[list[str], bool]:
    wanted = mapping.columns.options
    if isinstance(wanted, str):
        value = _cell(row, wanted)
        parts = value if isinstance(value, list) else str(value or "").split(mapping.separator)
        found = [text for part in parts if (text := text_of(part))]
        if len(found) != 4:
            raise _Bad(wanted, f"holds {len(found)} options, four are expected")
    else:
        found = [_required(row, column) for column in wanted or ()]
    labels = [_LABEL.match(text) for text in found]
    marked = [(m[1] or m[2]).upper() if m else "" for m in labels]
    bare = [text[m.end() :].strip() if m else "" for text, m in zip(found, labels, strict=True)]
    if marked == list(LETTERS) and all(bare):
        return bare, True
    return found, False


def _key(row: Row, mapping: ImportMapping, choices: Sequence[str]) -> str:
    column = mapping.columns.key or ""
    text = _required(row, column)
    if mapping.key_is == "text":
        bare = _unlabelled(text)
        hits = [n for n, choice in enumerate(choices) if _fold(choice) in (_fold(text), bare)]
        if len(hits) != 1:
            raise _Bad(column, f"{text[:60]!r} is the text of {len(hits)} options, of one expected")
        return LETTERS[hits[0]]
    if mapping.key_is in ("number", "zero_based"):
        first = 1 if mapping.key_is == "number" else 0
        if not re.fullmatch(r"\d", text) or not first <= int(text) < first + 4:
            raise _Bad(column, f"{text[:60]!r} is no number from {first} to {first + 3}")
        return LETTERS[int(text) - first]
    match = re.fullmatch(r"\(?(?:option\s+)?([A-Za-z])\)?[.:]?", text, re.IGNORECASE)
    if match:
        letter = match[1].upper()
    elif (label := _LABEL.match(text)) and text[label.end() :].strip():
        letter = (label[1] or label[2]).upper()
        if letter in LETTERS and _fold(choices[LETTERS.index(letter)]) != _unlabelled(text):
            raise _Bad(column, f"{text[:60]!r} names {letter}, whose text is another")
    else:
        raise _Bad(column, f"{text[:60]!r} is no letter; the mapping says key_is: letter")
    if letter not in LETTERS:
        raise _Bad(column, f"{letter} is outside the options A to D")
    return letter


def _fold(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .")


def _unlabelled(text: str) -> str:
    match = _LABEL.match(text)
    return _fold(text[match.end() :] if match else text)


def _optional(row: Row, name: str, column: str, mapping: ImportMapping) -> Any:
    value = _cell(row, column)
    if name in ("references", "check"):
        parts = value if isinstance(value, list) else str(value or "").split(mapping.separator)
        return [text for part in parts if (text := text_of(part))] or None
    if isinstance(value, list | dict):
        raise _Bad(column, "holds a list, a text is expected")
    text = text_of(value)
    if text is None:
        return None
    if text in mapping.values.get(name, {}):
        return mapping.values[name][text]
    if name in ("engineering_related", "edition_sensitive"):
        if text.casefold() in _TRUE | _FALSE:
            return text.casefold() in _TRUE
        raise _Bad(column, f"{text!r} is neither yes nor no; translate it under `values`")
    return text


def _doubled(
    table: Table, names: Sequence[tuple[Row, str]], mapping: ImportMapping, out: Path
) -> list[str]:
    """Ids are unique in the file and in the whole edition."""
    there = (items.read_manifest(out) or {"splits": {}})["splits"]
    seen = {name: f"data/{split}.jsonl" for split, e in there.items() for name in e["ids"]}
    faults = []
    for row, name in names:
        if name in seen:
            place = table.where(row, mapping.columns.id)
            faults.append(f"{place}: id {name} stands in {seen[name]} already")
        seen.setdefault(name, f"row {row.number}")
    return faults


def _invalid(table: Table, rows: Sequence[_Read], mapping: ImportMapping) -> list[str]:
    """What the format itself refuses, such as two options of the same text or an unknown Part."""
    from pydantic import ValidationError

    from hk_fs_bench.schema import MODELS, explain

    faults = []
    columns = mapping.field_columns()
    for row, item in rows:
        try:
            MODELS[mapping.type].model_validate(item)
        except ValidationError as error:
            name = next((str(e["loc"][0]) for e in error.errors() if e["loc"]), "")
            faults.append(f"{table.where(row, columns.get(name))}: {explain(error)}")
    return faults
