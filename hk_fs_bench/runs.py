"""The run folder: what was asked, of whom, how, and every answer as it came.

runs/<name>/run.json           the manifest
runs/<name>/predictions.jsonl  append-only, one row an answer
runs/<name>/items.jsonl        derived: parsed and scored rows
runs/<name>/scores.json        derived
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.items import jsonl_rows

FORMAT_VERSION = 1
Key = tuple[str, str, str, int]


@dataclass
class Run:
    """A manifest and the rows that count, by key (task, item_id, variant, sample)."""

    folder: Path
    manifest: dict[str, Any]
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def of_task(self, task: str) -> list[dict[str, Any]]:
        """The rows of one task, in the order in which they were first answered."""
        return [row for key, row in self.rows.items() if key[0] == task]

    @property
    def tasks(self) -> list[str]:
        return list(self.manifest["tasks"])


def key_of(row: Mapping[str, Any]) -> Key:
    return row["task"], row["item_id"], row.get("variant", ""), row.get("sample", 0)


def read_run(folder: Path) -> Run:
    """Read a run folder.

    Several rows may share a key: the last that is no `infra_error` counts; where there is only
    that, the last one stands for the missing answer.

    Raises:
        UserError: no run folder, a broken manifest, a broken row that is not the last one. A last
            line cut short by a crash is no fault: it was never a whole answer.
    """
    path = folder / "run.json"
    if not path.is_file():
        raise UserError(f"{folder} is no run folder: it has no run.json")
    try:
        manifest = json.loads(path.read_text("utf-8"))
        manifest["tasks"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is no run manifest; run the evaluation again") from None
    raw = b""
    if (predictions := folder / "predictions.jsonl").is_file():
        raw = predictions.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    rows: dict[Key, dict[str, Any]] = {}
    for number, row in jsonl_rows(whole, str(predictions)):
        try:
            key = key_of(row)
        except KeyError as error:
            raise UserError(f"{predictions} line {number}: no field {error}") from None
        failed_again = row.get("status") == "infra_error"
        if key not in rows or not failed_again or rows[key].get("status") == "infra_error":
            rows[key] = row
    return Run(folder, manifest, rows)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    _replace(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSONL file whole or not at all."""
    _replace(path, "".join(json.dumps(r, allow_nan=False) + "\n" for r in rows))


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        # mkstemp makes private files; a result is as readable as any file of its folder.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
