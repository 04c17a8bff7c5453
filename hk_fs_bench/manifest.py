"""An edition's files: the fixed order of items, and the manifest that names their content."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench import items
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import write_json, write_jsonl

# Behind the version of an edition whose files were edited after its release.
EDITED = "+edited"
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", re.ASCII)


def check_form(version: str) -> None:
    """UserError unless the version is three numbers."""
    if not _VERSION.fullmatch(version):
        raise UserError(f"{version} is no version; three numbers are expected, such as 1.0.0")


def check_number(version: str, released: Mapping[str, Any]) -> None:
    """UserError unless the version is three numbers, and above every released one."""
    check_form(version)
    if version in released:
        raise UserError(f"{version} is released already and can't change; name the next version")
    order = [tuple(map(int, name.split("."))) for name in (*released, version)]
    if order != sorted(order):
        raise UserError(f"{version} comes before {list(released)[-1]}, which is released")


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


def make_manifest(
    folder: Path,
    version: str | None = None,
    canary: str | None = None,
    profile: str | None = None,
    released: str | None = None,
) -> dict[str, Any]:
    """The manifest of the data files of `folder`, not yet written.

    Version, canary, profile and released versions are kept from the manifest that is there,
    unless they are given.

    Args:
        profile: "strict" for our own edition, "any" for an imported one.
        released: the date (ISO) of a release: the content becomes that of `version` for ever.

    Returns:
        version, sha256 of the edition, canary, profile; for every split its sha256, its number of
        items, and each item's id and sha256; and `versions`, the same for every release.

    Raises:
        UserError: a faulty item or file.
    """
    old = items.read_manifest(folder) or {"version": "0.0.0"}
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
            "ids": {item.id: items.item_sha256(item) for item in found},
        }
    if not contents:
        raise UserError(f"{folder} has no data files; data/mcq/test.jsonl is the first expected")
    sha256 = items.content_sha256(contents)
    name = version or old["version"].removesuffix(EDITED)
    versions = dict(old.get("versions") or {})
    if released:
        kept = {split: {k: e[k] for k in ("sha256", "ids")} for split, e in splits.items()}
        versions[name] = {"date": released, "sha256": sha256, "splits": kept}
    elif name in versions and versions[name]["sha256"] != sha256:
        name += EDITED
    return {
        "version": name,
        "sha256": sha256,
        "canary": canary or old.get("canary"),
        "profile": profile or old.get("profile", "strict"),
        "splits": splits,
        "versions": versions,
    }


def write_manifest(folder: Path, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Make the manifest of `folder` (see `make_manifest`) and write it; nothing on an error."""
    manifest = make_manifest(folder, *args, **kwargs)
    write_json(folder / "manifest.json", manifest)
    return manifest


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
