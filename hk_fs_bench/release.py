"""An edition's files: the fixed order of items, and the manifest that names their content."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench import items
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import write_json, write_jsonl


def stratified_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The one order of a split: shuffled by the hash of the id, Parts spread evenly.

    Any prefix holds each Part in about its share, so that `--limit` draws a fair sample; and an
    item added later moves no other item past its neighbours of the same Part.
    """
    parts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: _digest(row["id"])):
        parts[row.get("part") or ""].append(row)
    placed = [
        ((rank + 0.5) / len(members), part, row)
        for part, members in parts.items()
        for rank, row in enumerate(members)
    ]
    return [row for _, _, row in sorted(placed, key=lambda p: (p[0], p[1]))]


def write_edition(folder: Path, splits: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Write the data files of an edition in their fixed order; `splits` as in items.SPLITS."""
    for split, rows in splits.items():
        path = folder / "data" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_jsonl(path, stratified_order(rows))


def write_manifest(
    folder: Path, version: str | None = None, canary: str | None = None
) -> dict[str, Any]:
    """Validate the data files of `folder` and write the manifest.json that names their content.

    Version and canary are kept from the manifest that is there, unless they are given.

    Returns:
        The manifest: version, sha256 of the edition, canary, and for every split its sha256, its
        number of items, and each item's id and sha256.

    Raises:
        UserError: a faulty item or file; nothing is written then.
    """
    old = items.read_manifest(folder) or {"version": "0.0.0", "canary": None}
    contents: dict[str, bytes] = {}
    splits: dict[str, Any] = {}
    for split in items.SPLITS:
        path = folder / "data" / f"{split}.jsonl"
        if not path.is_file():
            continue
        contents[split] = path.read_bytes()
        found = items.parse_items(split, contents[split], f"{folder.name}: data/{split}.jsonl")
        splits[split] = {
            "sha256": hashlib.sha256(contents[split]).hexdigest(),
            "items": len(found),
            "ids": {item.id: item_sha256(item.model_dump()) for item in found},
        }
    if not contents:
        raise UserError(f"{folder} has no data files; data/mcq/test.jsonl is the first expected")
    manifest = {
        "version": version or old["version"],
        "sha256": items.content_sha256(contents),
        "canary": canary or old["canary"],
        "splits": splits,
    }
    write_json(folder / "manifest.json", manifest)
    return manifest


def item_sha256(row: Mapping[str, Any]) -> str:
    """The hash of an item's content, whatever the order of its fields."""
    return _digest(json.dumps(row, sort_keys=True, ensure_ascii=False))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
