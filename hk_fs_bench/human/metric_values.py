"""The automatic metrics of the rated answers, from the runs that `scripts/score.py` scored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.human.figures import Unit
from hk_fs_bench.human.study import Study, defaults
from hk_fs_bench.items import jsonl_rows
from hk_fs_bench.runs import read_run

LENGTH = "words"
TASK = "hk_fs_oeq"


@dataclass
class MetricValues:
    """Metric → (run, item) → value; `signatures` by metric; `notes` on what is missing and why.

    `folders` are the run folders that were found, by label; `changed` the labels of those whose
    answers are not, or not all, the text that was rated.
    """

    values: dict[str, dict[Unit, float]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    folders: dict[str, Path] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


def read_metrics(study: Study, key: Mapping[str, Any], runs: Sequence[Path]) -> MetricValues:
    """The metrics of every rated answer whose run is among `runs`, and its length in words.

    A value counts only for the very text that was rated.

    Raises:
        UserError: a run that is none, that the study has no part in, or two of one name.
    """
    found = MetricValues()
    rated: dict[Unit, str] = {}
    for candidate, held in key["candidates"].items():
        if held["kind"] == "model" and not held.get("repeat_of") and candidate in study.answers:
            rated[held["run"], held["item_id"]] = study.answers[candidate].answer
    found.values[LENGTH] = {unit: float(len(text.split())) for unit, text in rated.items()}
    found.signatures[LENGTH] = "words|split:blanks"
    labels = {str(held["folder"]): label for label, held in key["runs"].items()}
    for folder in runs:
        # A name has the folders above it where two runs are called alike.
        path = f"/{folder.resolve().as_posix()}"
        name = next((n for n in labels if path.endswith(f"/{n}")), None)
        if name is None:
            raise UserError(
                f"{folder} is no run of this study; it has {', '.join(labels)}, by name"
            )
        if labels[name] in found.folders:
            raise UserError(f"two runs are named {name}; give the one that was rated")
        found.folders[labels[name]] = folder
        _read(folder, labels[name], rated, found)
    for label in key["runs"]:
        if label not in found.folders:
            found.notes.append(f"{label}: its run was not given, so it has no automatic metrics")
    return found


def _read(folder: Path, label: str, rated: Mapping[Unit, str], found: MetricValues) -> None:
    read_run(folder)
    path = folder / "items.jsonl"
    if not path.is_file():
        found.notes.append(f"{label}: not scored yet: python scripts/score.py {folder.name}")
        return
    other = 0
    for number, row in jsonl_rows(path.read_bytes(), str(path)):
        try:
            unit = (label, row["item_id"])
            if row["task"] != TASK or row["sample"] or row["variant"] or unit not in rated:
                continue
            metrics = row.get("metrics") or {}
            values = {name: float(v) for name, v in metrics.items() if v is not None}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UserError(f"{path} line {number} is broken; score the run again") from None
        if not _same(rated[unit], row.get("answer")):
            other += 1
            continue
        for name, value in values.items():
            found.values.setdefault(name, {})[unit] = value
    if other:
        found.changed.add(label)
        found.notes.append(
            f"{label}: {other} answers are not the text that was rated (the run was answered "
            "again); they have no metrics here"
        )
    found.signatures |= _signatures(folder)


def _same(rated: str, scored: str | None) -> bool:
    shown = " ".join((scored or "").split()) or defaults()["no_answer"]
    return bool(" ".join(rated.split()) == shown)


def _signatures(folder: Path) -> dict[str, str]:
    try:
        held = json.loads((folder / "scores.json").read_text("utf-8"))
        metrics = held["tasks"][TASK]["metrics"]
        return {n: str(m["signature"]) for n, m in metrics.items() if m.get("signature")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
