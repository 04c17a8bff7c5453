"""The run folder: what was asked, of whom, how, and every answer as it came.

runs/<name>/run.json           the manifest
runs/<name>/predictions.jsonl  append-only, one row an answer
runs/<name>/parts/             of a run of several processes: a run folder each (see run_parts)
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
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.items import jsonl_rows

if TYPE_CHECKING:
    from filelock import BaseFileLock

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
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name an --output_path of lm_eval or a run")
    if not path.is_file():
        if found := [*folder.glob("*/run.json"), *folder.glob("*/*/results_*.json")]:
            names = sorted({held.relative_to(folder).parts[0] for held in found})
            raise UserError(
                f"{folder} holds runs and is none; name one of them: {', '.join(names)}"
            )
        raise UserError(
            f"{folder} is no run folder: it has no run.json and nothing of lm_eval, which needs "
            "both --log_samples and --output_path"
        )
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
            hash(key)
        except KeyError as error:
            raise UserError(f"{predictions} line {number}: no field {error}") from None
        except TypeError:
            raise UserError(
                f"{predictions} line {number}: task, item_id, variant and sample are no key"
            ) from None
        if key not in rows or settled(row) or not settled(rows[key]):
            rows[key] = row
    return Run(folder, manifest, rows)


def settled(row: Mapping[str, Any]) -> bool:
    """Whether a row is an answer, or the knowledge that none will come: not a failed call."""
    return row.get("status") != "infra_error"


class PredictionLog:
    """A run folder opened for writing: rows are appended one by one, by one process at a time.

    A row is one write to the file, flushed to the operating system before the next: killing the
    process loses nothing that was appended. Another process that opens the same folder is refused,
    and a lock never outlives the process that holds it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "predictions.jsonl"
        self._lock: BaseFileLock | None = None
        self._file = -1
        self._size = 0

    def __enter__(self) -> PredictionLog:
        from filelock import FileLock, Timeout

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock", timeout=0)
            lock.acquire()
        except Timeout:
            raise UserError(
                f"another process is writing to {self.folder}; let it end, or name another --out"
            ) from None
        except (OSError, NotImplementedError) as error:
            raise UserError(f"{self.folder} can't be written: {_reason(error)}") from None
        self._lock = lock
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._size = self._whole_lines()
        except OSError as error:
            self.__exit__(None, None, None)
            raise UserError(f"{self.path} can't be written: {_reason(error)}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._lock is not None:
            self._lock.release()

    def append(self, row: Mapping[str, Any]) -> None:
        """Append a row; UserError, and nothing written, if the disk has no room for it."""
        data = (json.dumps(row, allow_nan=False) + "\n").encode()
        try:
            written = os.write(self._file, data)
            if written < len(data):
                os.write(self._file, data[written:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise UserError(
                f"{self.path} can't be written: {_reason(error)}; what was appended before is "
                "kept, run the same command again"
            ) from None
        self._size += len(data)

    def _whole_lines(self) -> int:
        """Cut off what a crash left of a last line; give a whole one its line feed."""
        raw = self.path.read_bytes()
        end = raw.rfind(b"\n") + 1
        if end < len(raw):
            try:
                key_of(json.loads(raw[end:]))
            except (ValueError, KeyError, TypeError, AttributeError):
                os.ftruncate(self._file, end)
                return end
            os.write(self._file, b"\n")
            return len(raw) + 1
        return end


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def check_writable(folder: Path) -> None:
    """UserError where no file can be made: better known before a long computation than after."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(f"{folder} can't be written: {_reason(error)}") from None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSONL file whole or not at all."""
    write_text(path, "".join(json.dumps(r, allow_nan=False) + "\n" for r in rows))


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8) whole or not at all."""
    write_bytes(path, text.encode("utf-8", "surrogatepass"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"{path} can't be written: {_reason(error)}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp makes private files; a result is as readable as any file of its folder.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise UserError(f"{path} can't be written: {_reason(error)}") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
