"""Submissions scored anew from their raw answers, many at once, and kept.

What is kept lies in the user's cache, under a name made of the rows, the edition and this
package's own source: nothing that went into a figure can change behind it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from hk_fs_bench import answers, prompts, scoring
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.metrics.common import Unavailable
from hk_fs_bench.metrics.mcq import READABLE
from hk_fs_bench.open_metrics import Wanted
from hk_fs_bench.runs import Key, Run, write_bytes
from hk_fs_bench.scoring import ScoredRun

# Enough to compute without an encoder; what `build` stands on.
DEFAULT = Wanted(("bleu", "rouge", "citations"))
STATUS_LETTERS = {
    "valid": "v",
    "repaired": "r",
    "ambiguous": "a",
    "refused": "f",
    "truncated": "t",
    "empty": "e",
    "filtered": "x",
    "invalid": "i",
}
NO_ANSWER, UNREADABLE = " ", "."
# Values of single answers that pages show.
ROWS = ("rouge_l",)

Rows = Mapping[Key, Mapping[str, Any]]
Recomputed = dict[str, Any]


class CantCompute(UserError):
    """This machine lacks what the default check needs; the submission is not at fault."""


def run_of(manifest: Mapping[str, Any], rows: Rows, dataset: Dataset, asked: Dataset) -> Run:
    """A submission as a run on `dataset`.

    Where that is not the edition that was asked, the answers to questions that are the same in
    both are kept: a corrected key or an erratum's removal changes figures, a changed question
    makes the old answer an answer to something else.
    """
    run = copy.deepcopy(dict(manifest["run"]))
    kept = {key: dict(row) for key, row in rows.items()}
    if dataset.sha256 != asked.sha256:
        same = {
            name
            for name, item in dataset.by_id.items()
            if name in asked.by_id and _stem(item) == _stem(asked.by_id[name])
        }
        kept = {key: row for key, row in kept.items() if key[1] in same}
        run["protocol"] |= {"dataset_version": dataset.version, "dataset_sha256": dataset.sha256}
    return Run(Path(manifest["slug"]), run, kept)


def _stem(item: Any) -> tuple[str, tuple[str, ...]]:
    return item.question, tuple(getattr(item, "choices", ()))


def recompute(
    runs: Sequence[Run], dataset: Dataset, wanted: Wanted = DEFAULT, kept: bool = True
) -> list[Recomputed]:
    """What follows from each run's rows: see `_result`.

    Raises:
        UserError: rows that the scorer refuses, or open answers where Java is missing.
    """
    paths = [_cache_path(run, dataset, wanted) if kept else None for run in runs]
    found: list[Recomputed | None] = [_from_cache(path) for path in paths]
    todo = [i for i, one in enumerate(found) if one is None]
    fresh = scoring.evaluate([runs[i] for i in todo], dataset, wanted)
    for i, scored in zip(todo, fresh, strict=True):
        result = _result(scored, dataset)
        found[i] = result
        _keep(paths[i], result)
    return cast("list[Recomputed]", found)


def _result(one: ScoredRun, dataset: Dataset) -> Recomputed:
    """`scores`: the content of a scores.json; by task `outcomes` and `failures` as in
    leaderboard.json, and `shares`: question → the share of its answers that are right."""
    for task, scored in one.open.items():
        for name in ("bleu4", "rouge_l"):
            lack = scored.metrics[name]
            if scored.rows and isinstance(lack, Unavailable):
                raise CantCompute(f"{name} of {task} can't be recomputed here: {lack}")
    rows = {task: one.answered(task) for task in one.rows}
    return {
        "scores": one.scores,
        "outcomes": {task: _outcomes(own, dataset, task) for task, own in rows.items()},
        "failures": {task: _failures(own, one.run) for task, own in rows.items()},
        "shares": {task: _shares(own) for task, own in rows.items() if task not in one.open},
    }


def _outcomes(rows: Sequence[Mapping[str, Any]], dataset: Dataset, name: str) -> dict[str, Any]:
    task = prompts.load_task(name)
    first = {
        row["item_id"]: row for row in rows if row["sample"] == 0 and row["variant"] in ("", "rot0")
    }
    own = [first.get(item.id) for item in dataset.items(task.subset)]
    status = (NO_ANSWER if row is None else STATUS_LETTERS[row["status"]] for row in own)
    found: dict[str, Any] = {"status": "".join(status)}
    if task.subset == "mcq":
        letters = (NO_ANSWER if row is None else row["value"] or UNREADABLE for row in own)
        return found | {"chosen": "".join(letters)}
    return found | {
        "rows": {
            metric: [None if row is None else (row.get("metrics") or {}).get(metric) for row in own]
            for metric in ROWS
        }
    }


def _failures(rows: Sequence[Mapping[str, Any]], run: Run) -> list[dict[str, Any]]:
    """Answers that can't be read, by status and by what ended them."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["status"] in READABLE:
            continue
        raw = run.rows[row["task"], row["item_id"], row["variant"], row["sample"]]
        cause = raw.get("cause") or raw.get("finish_reason") or "not known"
        counts[row["status"], str(cause)] += 1
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"status": s, "cause": cause, "n": n} for (s, cause), n in order]


def _shares(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    from hk_fs_bench.metrics.mcq import by_question, is_correct

    return by_question(rows, is_correct)


@cache
def _code() -> str:
    """The hash of all that decides a figure in this package: its source and data."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(answers.PARSER_VERSION.encode())
    for path in sorted(
        [*root.rglob("*.py"), *root.glob("data/*"), *prompts.tasks_folder().glob("*")]
    ):
        if path.is_file() and "site" not in path.parts[-3:]:
            digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/hk-fs-bench/leaderboard, or under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hk-fs-bench" / "leaderboard"


def _cache_path(run: Run, dataset: Dataset, wanted: Wanted) -> Path:
    from importlib.metadata import version

    parts: list[Any] = [_code(), dataset.sha256, wanted.metrics, str(wanted.bertscore)]
    parts += [version(name) for name in ("numpy", "hk-fs-bench")]
    text = json.dumps([*parts, run.manifest, list(run.rows.values())], sort_keys=True)
    return cache_folder() / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def _from_cache(path: Path | None) -> Recomputed | None:
    """What was kept, or None; a file that can't be read is as good as none."""
    try:
        return cast("Recomputed | None", path and json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        return None


def _keep(path: Path | None, found: Recomputed) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(found).encode())
    except (OSError, UserError):
        return
