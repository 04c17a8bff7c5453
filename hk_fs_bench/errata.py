"""Errata: what changed in released items, so that every released version can be rebuilt.

A row of `errata.jsonl` is one change: `item`, the `version` that brought it, `change` ("changed" or
"removed"), `field` (null for "removed", where `old` is the whole item), `old`, `new`, `reason`,
`date` (ISO). Additions need no row: the manifest lists the ids of every version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hk_fs_bench.errors import UserError

FILE = "errata.jsonl"
FIELDS = ("item", "version", "change", "field", "old", "new", "reason", "date")
Row = Mapping[str, Any]


def changes(old: Row, new: Row | None) -> Iterator[dict[str, Any]]:
    """The changes that turn the item `old` into `new`; one "removed" where `new` is None."""
    if new is None:
        yield {"change": "removed", "field": None, "old": dict(old), "new": None}
        return
    for field in dict.fromkeys([*old, *new]):
        if old.get(field) != new.get(field):
            one = {"field": field, "old": old.get(field), "new": new.get(field)}
            yield {"change": "changed", **one}


def check(row: Row, where: str) -> None:
    """UserError for a row that is no erratum."""
    missing = [field for field in FIELDS if field not in row]
    if missing:
        raise UserError(f"{where}: no field {', '.join(missing)}")
    if row["change"] not in ("changed", "removed"):
        raise UserError(f"{where}: `change` is {row['change']!r}, wanted changed or removed")
    if not row["reason"]:
        raise UserError(f"{where}: no reason; say why the item changed")


def removed(rows: Iterable[Row]) -> set[str]:
    """Ids that were withdrawn."""
    return {row["item"] for row in rows if row["change"] == "removed"}


def rebuild(
    current: Iterable[Row], rows: Sequence[Row], manifest: Mapping[str, Any], version: str
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """The items of a released version, and the ids that can't be had.

    Args:
        current: every item of the edition, whatever its split, with all its fields.
        rows: the errata, oldest first.
        manifest: has `versions`, oldest first.

    Returns:
        split → items in the version's order, to be held against the sha256 of its manifest; ids
        of which there is neither a current item nor an erratum.
    """
    released = manifest.get("versions") or {}
    if version not in released:
        known = ", ".join(released) or "none"
        raise UserError(f"version {version} was never released; there are: {known}")
    names = list(released)
    known_then = set(names[: names.index(version) + 1])
    found = {row["id"]: dict(row) for row in current}
    for row in reversed(rows):
        if row["version"] in known_then:
            continue
        if row["change"] == "removed":
            found[row["item"]] = dict(row["old"])
        elif row["item"] in found:
            found[row["item"]][row["field"]] = row["old"]
    wanted = released[version]["splits"]
    lost = [name for entry in wanted.values() for name in entry["ids"] if name not in found]
    splits = {
        split: [found[name] for name in entry["ids"] if name in found]
        for split, entry in wanted.items()
    }
    return splits, lost
