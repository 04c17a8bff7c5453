"""A scored, complete run → a submission's folder, or what stands against it."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hk_fs_bench import items, lm_eval_runs, runs
from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import claims, entries, schemas, validating
from hk_fs_bench.leaderboard.checking import How
from hk_fs_bench.runs import Run


@dataclass(frozen=True)
class Declaration:
    """What only the submitter knows."""

    login: str
    contamination: str
    name: str | None = None
    statement: str | None = None
    notes: str | None = None
    kind: str = "result"
    supersedes: str | None = None
    links: Mapping[str, str] | None = None


def submit(folder: Path, root: Path, declared: Declaration, how: How) -> tuple[Path, list[str]]:
    """Pack a run into `root`/submissions, checked as everybody will check it.

    Returns:
        The new folder, and what the check notes of it.

    Raises:
        UserError: a run that is not scored or not complete, or that the check refuses; its lines
            are the error's details, and nothing was written.
    """
    run = _read(folder)
    if not run.manifest.get("complete", True):
        raise UserError(f"{run.folder} is incomplete; the runner's command again asks the rest")
    raw = (run.folder / "predictions.jsonl").read_bytes()
    manifest = manifest_of(run, raw, declared, how.today)
    submissions = root / "submissions"
    try:
        submissions.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".submitting-", dir=root))
    except OSError as error:
        raise UserError(f"{root} can't be written: {error.strerror}") from None
    try:
        manifest["slug"] = entries.slug_of(manifest)
        packed = temporary / str(manifest["slug"])
        packed.mkdir()
        runs.write_json(packed / entries.MANIFEST, manifest)
        runs.write_bytes(packed / entries.PREDICTIONS, entries.pack(raw))
        others = sorted(path for path in submissions.iterdir() if path.is_dir())
        report = validating.validate(root, [packed, *others], how=how, only_new=packed.name)
        own = f"{packed.name}: "
        if faults := [line.removeprefix(own) for line in report.faults if line.startswith(own)]:
            raise UserError(f"{run.folder} can't be submitted:", faults)
        target = submissions / packed.name
        if target.exists():
            raise UserError(f"{target} is there already: this very submission was packed before")
        os.rename(packed, target)
        return target, [line for line in report.notes if line.startswith(f"note: {own}")]
    except OSError as error:
        raise UserError(f"{submissions} can't be written: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read(folder: Path) -> Run:
    """A run folder, or the one that score.py made inside an --output_path of lm-eval."""
    if not (folder / "run.json").is_file() and lm_eval_runs.is_lm_eval_output(folder):
        inner = sorted(folder.glob("*/run.json"))
        if len(inner) == 1:
            folder = inner[0].parent
        elif not inner:
            raise UserError(f"{folder} is not scored yet: python scripts/score.py {folder}")
    return runs.read_run(folder)


def manifest_of(
    run: Run, raw: bytes, declared: Declaration, today: datetime.date
) -> dict[str, Any]:
    """submission.json without its slug."""
    kept = _known_fields(run.manifest)
    scores = _claims(run)
    try:
        key = entries.key_of(kept, entries.encoder_of(scores))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{run.folder / 'run.json'} lacks {error}; run it again") from None
    return {
        "schema_version": entries.SCHEMA_VERSION,
        "slug": None,
        "submitter": {"login": declared.login, "name": declared.name},
        "date": today.isoformat(),
        "kind": declared.kind,
        "supersedes": declared.supersedes,
        "links": dict(declared.links or {}),
        "notes": declared.notes,
        "declaration": {
            "contamination": declared.contamination,
            "outputs_unaltered": True,
            "statement": declared.statement,
        },
        "key": key,
        "run": kept,
        "predictions": {
            "sha256": hashlib.sha256(raw).hexdigest(),
            "bytes": len(raw),
            "rows": raw.count(b"\n"),
        },
        "scores": scores,
    }


def _known_fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run.json what the schema names; the rest tells of a machine, or of how it went."""
    schema = schemas.validator("submission").schema["$defs"]["run"]["properties"]
    found: dict[str, Any] = {}
    for name, rules in schema.items():
        value = manifest.get(name)
        if isinstance(value, dict) and (inner := rules.get("properties")):
            value = {k: v for k, v in value.items() if k in inner}
        if name in manifest:
            found[name] = value
    if isinstance(model := found.get("model"), dict):
        host = urlsplit(str(model.get("endpoint"))).hostname or ""
        # The address of a machine of one's own tells of that machine, and nobody can reach it.
        if model.get("deployment") != "api" or not re.search(r"\.[a-z][a-z0-9-]*$", host):
            model.pop("endpoint", None)
    if isinstance(software := found.get("software"), dict):
        found["software"] = {
            k: v if isinstance(v, int | float | None) and not isinstance(v, bool) else str(v)
            for k, v in software.items()
        }
    if "started_at" in found:
        found["started_at"] = _moment(found["started_at"])
    return found


def _moment(value: Any) -> str | None:
    """A time as ISO; lm-eval writes seconds since 1970."""
    try:
        if isinstance(value, int | float):
            return datetime.datetime.fromtimestamp(value, datetime.UTC).isoformat("T", "seconds")
        parsed = datetime.datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)).isoformat()


def _claims(run: Run) -> dict[str, Any]:
    """The scores that score.py wrote into the run's folder."""
    paths = {name: run.folder / name for name in ("scores.json", "items.jsonl")}
    if not all(path.is_file() for path in paths.values()):
        raise UserError(f"{run.folder} is not scored yet: python scripts/score.py {run.folder}")
    try:
        scores = json.loads(paths["scores.json"].read_text("utf-8"))
        rows = [row for _, row in items.jsonl_rows(paths["items.jsonl"].read_bytes(), "items")]
        by_task = {task: [r for r in rows if r["task"] == task] for task in scores["tasks"]}
        return claims.of_scores(scores, {t: claims.in_order(own) for t, own in by_task.items()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"scores.json of {run.folder} is not of today's form; score the run again: "
            f"python scripts/score.py {run.folder}"
        ) from None
