"""A submission's folder: read within bounds, checked for form; its key and its slug.

    leaderboard/submissions/<slug>/submission.json
    leaderboard/submissions/<slug>/predictions.jsonl.gz   the run's predictions.jsonl, compressed

Nothing in it is trusted: sizes are looked at before bytes, links are never followed, and what
unpacks to more than its limit is let go.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hk_fs_bench.leaderboard import safe_text, schemas, strict_json
from hk_fs_bench.leaderboard.strict_json import Fault

SCHEMA_VERSION = 1
MANIFEST, PREDICTIONS = "submission.json", "predictions.jsonl.gz"
FILES = (MANIFEST, PREDICTIONS)
# Faults of one manifest that are told; a stranger's file may have any number.
_MOST = 50
_SAMPLES = 100
# Texts in which a person writes more than a line.
_LINES = ("notes", "declaration.statement")
# Texts that no person writes, and that are longer than a name.
_MACHINE = ("scores.", "run.protocol.parameters_", "run.protocol.generation_kwargs", "run.price.")


@dataclass(frozen=True)
class Entry:
    """One submission as it stands; `predictions` are the bytes of the run's predictions.jsonl."""

    folder: Path
    manifest: dict[str, Any]
    predictions: bytes

    @property
    def slug(self) -> str:
        return self.folder.name

    @property
    def version(self) -> str:
        return str(self.manifest["run"]["protocol"]["dataset_version"])

    @property
    def samples(self) -> int:
        """Answers a prompt; no more than the schema allows, whatever the manifest says."""
        return min(int(self.manifest["run"]["protocol"].get("samples") or 1), _SAMPLES)


def read(folder: Path) -> tuple[Entry | None, list[str], bool]:
    """A submission, what is wrong with its form, and whether its manifest fits the schema.

    None where it can't be read at all. One that breaks the schema is handed on, so that what else
    is wrong is found at once; nothing in it can be relied on.
    """
    faults = list(_folder_faults(folder))
    if faults:
        return None, faults, False
    manifest, faults, sound = _parsed(folder)
    try:
        predictions = read_predictions(folder)
    except Fault as fault:
        return None, [*faults, f"{PREDICTIONS}: {fault}"], False
    if not isinstance(manifest, dict):
        return None, faults, False
    entry = Entry(folder, manifest, predictions)
    if sound:
        faults += _binding_faults(entry)
    return entry, faults, sound


def read_predictions(folder: Path) -> bytes:
    """The bytes of the run's predictions.jsonl.

    Raises:
        Fault: a file that is too large, or no gzip file.
    """
    return unpack(_bounded(folder / PREDICTIONS, safe_text.settings()["sizes"][PREDICTIONS]))


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """submission.json; None where it can't be used."""
    manifest, _, sound = _parsed(folder)
    return manifest if sound else None


def _parsed(folder: Path) -> tuple[Any, list[str], bool]:
    """submission.json, what is wrong with it, and whether it fits the schema."""
    try:
        raw = _bounded(folder / MANIFEST, safe_text.settings()["sizes"][MANIFEST])
        manifest = strict_json.parse(raw)
    except Fault as fault:
        return None, [f"{MANIFEST}: {fault}"], False
    form = [f"{MANIFEST}: {fault}" for fault in islice(form_faults(manifest), _MOST + 1)]
    texts = [f"{MANIFEST}: {fault}" for fault in islice(text_faults(manifest), _MOST + 1)]
    faults = form + texts
    if len(faults) > _MOST:
        faults[_MOST:] = [f"{MANIFEST}: and more"]
    return manifest, faults, not form


def form_faults(manifest: Any) -> Iterator[str]:
    """What the schema says against a submission.json."""
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if isinstance(manifest, dict) and (type(version) is not int or version != SCHEMA_VERSION):
        yield f"schema_version must be the integer {SCHEMA_VERSION}, not {version!r}"
    # A stranger's file may have a million.
    first = islice(schemas.validator("submission").iter_errors(manifest), 20 * _MOST)
    errors = sorted(first, key=lambda e: list(map(str, e.absolute_path)))
    for error in errors:
        if list(error.absolute_path) != ["schema_version"]:
            yield schemas.explain(error)


def text_faults(manifest: Any) -> Iterator[str]:
    """What the rules of texts say against a submission.json."""
    for place, text in safe_text.strings(manifest):
        by_machine = place.startswith(_MACHINE)
        if what := safe_text.unprintable(text, by_machine or place in _LINES, by_machine):
            yield f"{place} has {what}"
        if place == "submitter.name" and (what := safe_text.mixed(text)):
            yield f"{place} has {what}"
        if what := safe_text.secret(text):
            yield f"{place} holds what looks like a key ({what})"
        if safe_text.names_a_secret(place) and text:
            yield f"{place} is a field of a secret"
        if what := safe_text.local_path(text):
            yield f"{place} holds a path of a machine ({what})"
        if not by_machine and (what := safe_text.excerpt(text)):
            yield f"{place} holds an excerpt of the Code ({what[:60]}…)"


def _folder_faults(folder: Path) -> Iterator[str]:
    """Whether the folder holds the two files and nothing else."""
    try:
        mode = folder.lstat().st_mode
    except OSError:
        yield "no such folder"
        return
    if not stat.S_ISDIR(mode):
        yield "is no folder" + (" but a link" if stat.S_ISLNK(mode) else "")
        return
    names = sorted(os.listdir(folder))
    for name in names:
        shown = name.encode("unicode_escape").decode()[:80]
        if name not in FILES:
            yield f"holds {shown}; only {' and '.join(FILES)} belong there"
        elif not stat.S_ISREG((folder / name).lstat().st_mode):
            yield f"{shown} is no plain file"
    for name in FILES:
        if name not in names:
            yield f"lacks {name}"


def _bounded(path: Path, most: int) -> bytes:
    """The bytes of a plain file of at most `most` bytes; its size is looked at first."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK)
    except OSError as error:
        raise Fault(f"can't be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Fault("is no plain file")
        if status.st_size > most:
            raise Fault(f"has {status.st_size:,} bytes, {most:,} are allowed")
        return file.read(most + 1)


def digest(folder: Path) -> str | None:
    """The hash of a submission's name and files; None where its folder is not as it should be."""
    if next(_folder_faults(folder), None) is not None:
        return None
    found = hashlib.sha256(folder.name.encode())
    for name in FILES:
        try:
            raw = _bounded(folder / name, safe_text.settings()["sizes"][name])
        except Fault:
            return None
        found.update(hashlib.sha256(raw).digest())
    return found.hexdigest()


def unpack(packed: bytes) -> bytes:
    """The bytes of a gzip file of one part, as `pack` makes it; given up beyond the limit."""
    most = int(safe_text.settings()["sizes"]["predictions.jsonl"])
    if not packed:
        raise Fault("no gzip file (it is empty)")
    stream = zlib.decompressobj(wbits=31)
    try:
        raw = stream.decompress(packed, most + 1)
    except zlib.error as error:
        raise Fault(f"no gzip file ({str(error)[:80]})") from None
    if len(raw) > most:
        raise Fault(f"unpacks to more than {most:,} bytes")
    if not stream.eof:
        raise Fault("no gzip file (it ends too early)")
    # What no check would ever see: a name or a field in the header, bytes behind the end.
    if packed[3] or stream.unused_data:
        raise Fault(
            "holds more than the rows: a name, a comment, a second part or bytes at the end"
        )
    return raw


def pack(raw: bytes) -> bytes:
    """Compressed, the same bytes on every day and machine with the same zlib."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(raw)
    return out.getvalue()


def key_of(run: Mapping[str, Any], encoder: str | None) -> dict[str, Any]:
    """What an entry is about."""
    model, protocol = run["model"], run["protocol"]
    return {
        "model": model["id"],
        "revision": model.get("revision") or model.get("weights_sha256"),
        "provider": model["provider"],
        "mode": model["mode"],
        "search": model["search"],
        "regime": protocol["regime"],
        "task_versions": {task: protocol["task_versions"].get(task) for task in run["tasks"]},
        "dataset_version": protocol["dataset_version"],
        "encoder": encoder,
    }


def encoder_of(scores: Mapping[str, Any]) -> str | None:
    """The encoder behind the claimed BERTScore: the part of its signature that names it."""
    for task in scores.values():
        for name, figure in (task.get("metrics") or {}).items():
            if name.startswith("bertscore_f1") and figure.get("signature"):
                parts = str(figure["signature"]).split("|")
                return "|".join(p for p in parts if p.startswith(("model:", "layer:")))[:200]
    return None


def slug_of(manifest: Mapping[str, Any]) -> str:
    """The one slug that a submission.json can have: it names its content."""
    content = {name: value for name, value in manifest.items() if name != "slug"}
    digest = hashlib.sha256(canonical(content).encode()).hexdigest()
    return f"{safe_text.slug_part(manifest['run']['model']['id'])}-{digest[:10]}"


def canonical(value: Any) -> str:
    """A JSON value as the one text that it has."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _binding_faults(entry: Entry) -> Iterator[str]:
    """Whether folder, manifest and predictions belong together."""
    manifest = entry.manifest
    if manifest["slug"] != entry.slug:
        yield f"{MANIFEST}: the slug is {manifest['slug']}, the folder {entry.slug}"
    elif entry.slug != (own := slug_of(manifest)):
        yield f"{MANIFEST}: changed after it was packed (its slug would be {own}); submit it again"
    counted = {
        "sha256": hashlib.sha256(entry.predictions).hexdigest(),
        "bytes": len(entry.predictions),
        "rows": entry.predictions.count(b"\n"),
    }
    for name, value in counted.items():
        if manifest["predictions"][name] != value:
            stated = manifest["predictions"][name]
            yield f"{MANIFEST}: predictions.{name}: stated {stated}, is {value}"
    key = key_of(manifest["run"], encoder_of(manifest["scores"]))
    for name, value in key.items():
        if manifest["key"][name] != value:
            yield f"{MANIFEST}: key.{name}: stated {manifest['key'][name]}, the run has {value}"
