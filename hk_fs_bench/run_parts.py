"""Runs of several processes: each keeps a part, and a reader makes one run of them.

runs/<name>/parts/<k>-of-<n>/  a run folder, or an lm-eval --output_path, of one process
runs/<name>/                   the run that they are together, rebuilt at any time

Parts must be of one model, asked one way, and answer different prompts; anything else is refused.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench import lm_eval_runs
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.runs import Key, Run, read_run, settled, write_json, write_jsonl

# What decides an answer. Batch size, device and number of processes are not among it.
IDENTITY = (
    ("model", "id"),
    ("model", "revision"),
    ("model", "weights_sha256"),
    ("model", "provider"),
    ("model", "mode"),
    ("model", "model_args"),
    ("protocol", "dataset_sha256"),
    ("protocol", "regime"),
    ("protocol", "generation_kwargs"),
    ("protocol", "chat_template_sha256"),
    ("protocol", "chat_template_used"),
    ("protocol", "num_fewshot"),
    ("protocol", "system_instruction_sha"),
    ("software", "dtype"),
)
# What a part that only compares probabilities does not have.
OF_GENERATING = ("regime", "generation_kwargs")
BY_TASK = ("task_versions", "prompt_templates_sha256", "max_tokens")


def part_name(index: int, count: int) -> str:
    """The folder of process `index` (from 0) of `count`."""
    return f"{index + 1}-of-{count}"


def folders(folder: Path) -> list[Path]:
    """The parts of a run folder that have begun; none if it has none."""
    files = ("run.json", "results_*.json", "*/results_*.json", "samples_*", "*/samples_*")
    return sorted(
        path
        for path in (folder / "parts").glob("*")
        if any(next(path.glob(pattern), None) for pattern in files)
    )


def read(folder: Path, dataset: Dataset | None = None, model_id: str | None = None) -> Run:
    """A part, whoever wrote it; lm-eval's output is made a run folder first (see lm_eval_runs)."""
    if lm_eval_runs.is_lm_eval_output(folder):
        return lm_eval_runs.convert(folder, dataset=dataset, model_id=model_id)
    return read_run(folder)


def generates(manifest: Mapping[str, Any]) -> bool:
    """Whether a part's answers are texts: at least one task's."""
    return manifest["protocol"].get("generation_kwargs") is not None


def check_same(where: Path, old: Mapping[str, Any], new: Mapping[str, Any], what: str) -> None:
    """UserError if two manifests are of different models or were asked differently.

    Args:
        where, what: for the message: the folder of `old`, and what `new` is of.
    """
    both = generates(old) and generates(new)
    for part, name in IDENTITY:
        before, now = _said(old, part, name), _said(new, part, name)
        if before != now and (both or name not in OF_GENERATING):
            _refuse(where, name, before, what, now)
    for name in BY_TASK:
        known = old["protocol"].get(name) or {}
        for task, value in (new["protocol"].get(name) or {}).items():
            if task in known and known[task] != value:
                _refuse(where, f"{name} of {task}", known[task], what, value)


def _said(manifest: Mapping[str, Any], part: str, name: str) -> Any:
    value = (manifest.get(part) or {}).get(name)
    if name == "dtype":
        return str(value).removeprefix("torch.")  # As lm-eval writes it.
    # Runs of before model_args were recorded say nothing, and so do most of today's.
    return value or None if name == "model_args" else value


def _refuse(where: Path, name: str, before: Any, what: str, now: Any) -> None:
    raise UserError(
        f"{where} holds answers with {name} {str(before)[:60]}, and {what} has {str(now)[:60]}; "
        "name another --out, or move that folder away"
    )


def merge(folder: Path, parts: Sequence[Run]) -> Run:
    """One run of its parts: writes run.json and predictions.jsonl into `folder`.

    Raises:
        UserError: parts of different models or settings, or a prompt answered in two of them.
    """
    # A part without an answer says nothing of what was asked; it counts where there is no other.
    parts = [part for part in parts if part.rows] or parts
    # One that generated comes first: how that was is what the others are held against.
    parts = sorted(parts, key=lambda part: not generates(part.manifest))
    first = parts[0]
    rows: dict[Key, dict[str, Any]] = {}
    source: dict[Key, Path] = {}
    for part in parts:
        check_same(first.folder, first.manifest, part.manifest, str(part.folder))
        for key, row in part.rows.items():
            if key in rows and settled(rows[key]) and settled(row):
                raise UserError(
                    f"{key[1]} {key[2]} of {key[0]} is answered in {source[key].name} and in "
                    f"{part.folder.name} of {folder}; parts must answer different prompts; "
                    "move one of them away"
                )
            if key not in rows or settled(row):
                rows[key], source[key] = row, part.folder
    manifest = _manifest([part.manifest for part in parts], rows)
    # In the order of the tasks, then as answered: the same parts make the same file.
    order = {task: number for number, task in enumerate(manifest["tasks"])}
    rows = dict(sorted(rows.items(), key=lambda held: (order[held[0][0]], held[0][1:])))
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "predictions.jsonl", rows.values())
    write_json(folder / "run.json", manifest)
    return Run(folder, manifest, rows)


def _manifest(parts: Sequence[Mapping[str, Any]], rows: Mapping[Key, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(dict(parts[0]))
    merged["tasks"] = list(dict.fromkeys(task for part in parts for task in part["tasks"]))
    for name in BY_TASK:
        merged["protocol"][name] = {
            task: value
            for part in parts
            for task, value in (part["protocol"].get(name) or {}).items()
        }
    limits = [part["protocol"].get("limit") for part in parts]
    merged["protocol"]["limit"] = None if None in limits else max(limits)
    merged["sessions"] = [s for part in parts for s in part.get("sessions") or []]
    merged["timing"] = _timing([part.get("timing") or {} for part in parts])
    started = [part["started_at"] for part in parts if part.get("started_at")]
    merged["started_at"] = min(started, key=str, default=None)
    merged["processes"] = len(parts)
    # What the whole run was to answer, which each part knows: a part that never began is missing.
    whole: dict[str, int] = {}
    for part in parts:
        for task, n in (part.get("planned_whole") or part.get("planned") or {}).items():
            whole[task] = max(whole.get(task, 0), n)
    if whole:
        answered = sum(settled(row) for row in rows.values())
        merged["planned"] = merged["planned_whole"] = whole
        merged["complete"] = answered >= sum(whole.values())
        stopped = [part["stopped"] for part in parts if part.get("stopped")]
        merged["stopped"] = stopped[0] if stopped and not merged["complete"] else None
    return merged


def _timing(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Seconds of several processes are added up, whether they ran side by side or in turn."""
    merged = dict(parts[0])
    for name in ("total_seconds", "requests"):
        if name in merged:
            merged[name] = sum(part.get(name, 0) for part in parts)
    return merged
