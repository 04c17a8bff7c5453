"""Submissions scored anew from their raw answers, many at once."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench import prompts, scoring
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.leaderboard import claims, echoes
from hk_fs_bench.metrics.common import Unavailable
from hk_fs_bench.metrics.mcq import READABLE
from hk_fs_bench.open_metrics import Wanted
from hk_fs_bench.runs import Key, Run
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


def recompute(runs: Sequence[Run], dataset: Dataset, wanted: Wanted = DEFAULT) -> list[Recomputed]:
    """What follows from each run's rows: see `_result`.

    Raises:
        UserError: rows that the scorer refuses.
        CantCompute: open answers where Java is missing.
    """
    return [_result(one, dataset) for one in scoring.evaluate(runs, dataset, wanted)]


def _result(one: ScoredRun, dataset: Dataset) -> Recomputed:
    """`scores`: the content of a scores.json; by task `outcomes` and `failures` as in
    leaderboard.json, and `shares`: question → the share of its answers that are right; `searched`:
    answers whose rows name sources; `words` as `echoes` has them; `values` as `_values`."""
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
        "searched": sum(
            bool(row.get("sources_used") or row.get("sources")) for row in one.run.rows.values()
        ),
        "shares": {task: _shares(own) for task, own in rows.items() if task not in one.open},
        "words": echoes.words_of((r for own in rows.values() for r in own), one.run.rows.values()),
        "values": {task: _values(rows[task]) for task in one.open},
    }


def _values(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Each answer's value of the metrics that only the full check recomputes."""
    order = claims.in_order(rows)
    names = {name for row in order for name in row.get("metrics") or {} if claims.is_recorded(name)}
    return {name: [(row.get("metrics") or {}).get(name) for row in order] for name in names}


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
