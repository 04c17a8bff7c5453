"""A study's scores as the leaderboard reads them: leaderboard/studies/<study>.json."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import write_json

SCHEMA_VERSION = 1
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_SCORES = ("accuracy", "clarity", "unsafe_share")


def of_study(report: Mapping[str, Any], folders: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """File name → content: people's scores, and those of each judge in a file of its own.

    No role and no rater is in it. A bound that is not known is null.

    Args:
        folders: run label → its folder, for the hash of its predictions.

    Raises:
        UserError: a rated run is not at hand, or the study's name is no file name.
    """
    found = {}
    if "models" in report:
        name = _name(report["study"])
        found[f"{name}.json"] = _content(report, name, "expert", report["models"], folders)
    for judge, held in report["judges"].items():
        slug = re.sub(r"[^\w.-]+", "-", judge, flags=re.ASCII).strip("-.")[:30]
        # Two judges' names may differ in other signs alone.
        told = hashlib.sha256(judge.encode()).hexdigest()[:6]
        name = _name(f"{report['study']}-{slug}-{told}")
        title = f"{report['study']}, judged by {judge}"
        found[f"{name}.json"] = _content(report, title, "model", held["models"], folders)
    return found


def write(contents: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write them, whole or not at all; returns their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error.strerror}") from None
    for name, content in contents.items():
        write_json(folder / name, content)
    return [folder / name for name in contents]


def _name(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise UserError(
            f"the study's name {text!r} is no file name of letters, digits, dots and dashes; "
            "rename its folder and `name` in study.json"
        )
    return text


def _content(
    report: Mapping[str, Any],
    title: str,
    kind: str,
    models: Mapping[str, Mapping[str, Any]],
    folders: Mapping[str, Path],
) -> dict[str, Any]:
    if lacking := [report["names"][run] for run in models if run not in folders]:
        raise UserError(
            f"--publish names the rated answers by the hash of their run: give the run of "
            f"{', '.join(lacking)}"
        )
    dataset = report["dataset"]
    return {
        "schema_version": SCHEMA_VERSION,
        "study": title,
        "rubric_version": report["rubric"]["version"],
        # An edition without a manifest has no version; its content still has a name.
        "dataset_version": dataset["version"] or f"sha256 {dataset['sha256'][:12]}",
        "kind": kind,
        "models": [
            {
                "predictions_sha256": _sha256(folders[run]),
                **{name: _score(held[name]) for name in _SCORES},
                "raters": held["raters"],
            }
            for run, held in models.items()
        ],
    }


def _score(held: Mapping[str, Any]) -> dict[str, Any]:
    low, high = held["ci95"] or (None, None)
    named = {"value": held["value"], "low": low, "high": high}
    # Sums leave digits behind that mean nothing; a bound of 3e-18 is 0.
    return {k: v if v is None else round(v, 12) for k, v in named.items()} | {"n": held["n"]}


def _sha256(folder: Path) -> str:
    path = folder / "predictions.jsonl"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise UserError(f"{path} can't be read, and --publish needs its hash") from None
