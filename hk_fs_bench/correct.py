"""Correct or withdraw released items, and record how: the one way in which they may change.

The data file and `errata.jsonl` are written together, so that the old value can't be lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench import errata, items
from hk_fs_bench.errors import UserError
from hk_fs_bench.manifest import check_number, write_edition, write_manifest
from hk_fs_bench.runs import write_jsonl

# An item's identity, when it came, and the mark by which a corpus is searched for it.
_FIXED = ("id", "canary", "since")


def field_values(pairs: Sequence[str]) -> dict[str, Any]:
    """`field=value` as written on a command line: the value is JSON, or a text as it stands."""
    found = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise UserError(f"{pair!r} sets nothing; write field=value")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def correct(
    folder: Path, item: str, values: Mapping[str, Any], version: str, reason: str, date: str
) -> list[dict[str, Any]]:
    """Set fields of an item; its `revised` becomes `version`. Returns the new errata.

    Raises:
        UserError: no such item, a value that the format refuses, nothing that changes.
    """

    if fixed := [name for name in _FIXED if name in values]:
        raise UserError(f"{', '.join(fixed)} of an item can't be changed; nothing was changed")

    def edit(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, **values, "revised": version}

    return _apply(folder, {item: edit}, version, reason, date)


def withdraw(
    folder: Path, names: Sequence[str], version: str, reason: str, date: str
) -> list[dict[str, Any]]:
    """Take items out of the edition. Returns the new errata, which keep them whole."""
    return _apply(folder, dict.fromkeys(names, lambda row: None), version, reason, date)


def record_differences(
    folder: Path, previous: items.Dataset, version: str, reason: str, date: str
) -> list[dict[str, Any]]:
    """Record edits that were made in place, against a copy of the edition before them."""
    _check(folder, version, reason)
    now = {i.id: i.model_dump() for split in items.load(folder).splits.values() for i in split}
    rows: list[dict[str, Any]] = []
    for split in previous.splits.values():
        for old in split:
            found = errata.changes(old.model_dump(), now.get(old.id))
            rows += [_row(old.id, change, version, reason, date) for change in found]
    _append(folder, rows)
    return rows


def _apply(
    folder: Path, edits: Mapping[str, Any], version: str, reason: str, date: str
) -> list[dict[str, Any]]:
    _check(folder, version, reason)
    splits = {}
    for split in items.load(folder).splits:
        path = folder / "data" / f"{split}.jsonl"
        splits[split] = [row for _, row in items.jsonl_rows(path.read_bytes(), path.name)]
    where = {row["id"]: split for split, found in splits.items() for row in found}
    if unknown := [name for name in edits if name not in where]:
        raise UserError(f"{folder.name} has no item {', '.join(unknown)}")
    rows: list[dict[str, Any]] = []
    for name, edit in edits.items():
        found = splits[where[name]]
        place = next(n for n, row in enumerate(found) if row["id"] == name)
        new = edit(found[place])
        changed = list(errata.changes(found[place], new))
        if {change["field"] for change in changed} <= {"revised"} and new is not None:
            raise UserError(f"{name} has these values already; nothing to correct")
        if new is not None:
            _check_item(where[name], new)
        rows += [_row(name, change, version, reason, date) for change in changed]
        found[place : place + 1] = [] if new is None else [new]
    write_edition(folder, {where[name]: splits[where[name]] for name in edits})
    _append(folder, rows)
    return rows


def _check(folder: Path, version: str, reason: str) -> None:
    if not reason.strip():
        raise UserError("no reason is given; say why the item changes")
    released = (items.read_manifest(folder) or {}).get("versions") or {}
    check_number(version, released)
    pending = {row["version"] for row in items.read_errata(folder)} - {*released, version}
    if pending:
        first = min(pending)
        raise UserError(f"{first} has errata and isn't released yet; add to it, or release it")


def _check_item(split: str, row: Mapping[str, Any]) -> None:
    from pydantic import ValidationError

    from hk_fs_bench.schema import MODELS, explain

    try:
        MODELS[split.split("/")[0]].model_validate(row)
    except ValidationError as error:
        raise UserError(f"{row['id']}: {explain(error)}; nothing was changed") from None


def _row(
    item: str, change: Mapping[str, Any], version: str, reason: str, date: str
) -> dict[str, Any]:
    row = {"item": item, "version": version, **change, "reason": reason, "date": date}
    return {field: row[field] for field in errata.FIELDS}


def _append(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    write_jsonl(folder / errata.FILE, [*items.read_errata(folder), *rows])
    write_manifest(folder)
