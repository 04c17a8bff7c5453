"""What practitioners know: multiple-choice questions answered closed book, then open book.

The figure that a model's accuracy is to be held against, and that nobody has: until results come
in, everything here is null and says so.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench import stats
from hk_fs_bench.errors import UserError
from hk_fs_bench.human.study import made_folder
from hk_fs_bench.items import LETTERS, Dataset
from hk_fs_bench.review_rounds import sample
from hk_fs_bench.runs import write_json
from hk_fs_bench.stats.estimate import undefined

if TYPE_CHECKING:
    from hk_fs_bench.schema import MCQItem

FORMAT = "hk-fs-mcq-result"
CONDITIONS = ("closed", "open")
COUNT = 60
# An answer that is not right without being a guess.
CANNOT_TELL = "?"


@dataclass(frozen=True)
class Answered:
    """A participant's answer; `answer` is a letter, "?" or None where it was left open."""

    participant: str
    item_id: str
    condition: str
    answer: str | None
    seconds: float | None


def draw(dataset: Dataset, seed: int, count: int = COUNT) -> list[MCQItem]:
    """`count` test questions, stratified over Part and engineering, drawn and ordered by `seed`."""
    held: dict[str, Any] = {item.id: item for item in dataset.items("mcq")}
    rows = [
        {
            "id": i.id,
            "choices": i.choices,
            "part": i.part,
            "engineering_related": i.engineering_related,
        }
        for i in held.values()
    ]
    random.Random(seed).shuffle(rows)
    return [held[row["id"]] for row in sample(rows, count)]


def read_results(paths: Sequence[Path], dataset: Dataset) -> list[Answered]:
    """The answers in result files of the form.

    Raises:
        UserError: a file that is no result, is of another edition, lacks consent, or is a second
            one of a participant; faults are listed, nothing is taken from any file.
    """
    found: list[Answered] = []
    faults: list[str] = []
    seen: dict[str, str] = {}
    for path in paths:
        try:
            rows = _rows(path, dataset)
        except ValueError as error:
            faults.append(f"{path.name}: {error}")
            continue
        who = rows[0].participant
        if who in seen:
            faults.append(f"{path.name}: {who} is in {seen[who]} too; keep the one that counts")
        seen[who] = path.name
        found += rows
    if faults:
        raise UserError(f"{len(faults)} of {len(paths)} results can't be used", faults)
    return found


def _rows(path: Path, dataset: Dataset) -> list[Answered]:
    try:
        held = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"can't be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ValueError("is no JSON; ask for the file as it was downloaded") from None
    if not isinstance(held, dict) or held.get("format") != FORMAT or held.get("version") != 1:
        raise ValueError(f"is no result of the form ({FORMAT}, version 1)")
    who, edition, consent = (held.get(name) for name in ("rater", "dataset", "consent"))
    if not isinstance(who, str) or not who:
        raise ValueError("names no participant")
    if not isinstance(consent, dict) or consent.get("given") is not True:
        raise ValueError("holds no consent, so nothing in it may be used")
    if not isinstance(edition, dict) or edition.get("sha256") != dataset.sha256:
        raise ValueError("is of another edition of the dataset")
    rows = held.get("answers")
    if not isinstance(rows, list) or not rows:
        raise ValueError("holds no answers")
    answers = [_answer(row, who, dataset) for row in rows]
    if len({(one.item_id, one.condition) for one in answers}) < len(answers):
        raise ValueError("answers a question twice")
    return answers


def _answer(row: Any, who: str, dataset: Dataset) -> Answered:
    if not isinstance(row, dict):
        raise ValueError("holds an answer that is no object")
    item, condition, answer = (row.get(name) for name in ("item_id", "condition", "answer"))
    seconds = row.get("seconds")
    if not isinstance(item, str) or not hasattr(dataset.by_id.get(item), "choices"):
        raise ValueError(f"answers {str(item)[:40]!r}, which is no test question")
    if condition not in CONDITIONS:
        raise ValueError(f"{item}: condition {str(condition)[:40]!r} is none of the form's")
    if answer is not None and answer not in (*LETTERS, CANNOT_TELL):
        raise ValueError(f"{item}: {str(answer)[:40]!r} is no option")
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 0 <= seconds < 1e9 and math.isfinite(seconds)):
        raise ValueError(f"{item}: {str(seconds)[:40]!r} is no time in seconds")
    return Answered(who, item, condition, answer, None if seconds is None else float(seconds))


def figures(rows: Sequence[Answered], dataset: Dataset) -> dict[str, Any]:
    """Accuracy by condition, for the practitioners who took part, and their gain from the book.

    An answer left open is not counted; "I can't tell" counts as not right. The interval resamples
    questions with all their answers: it is about other questions, not other practitioners.
    """
    signature = f"mcq-baseline 1, dataset {dataset.version or 'unversioned'} {dataset.sha256[:12]}"
    out: dict[str, Any] = {"format": 1, "signature": signature, "conditions": {}}
    right = {row: _right(row, dataset) for row in rows if row.answer is not None}
    for condition in CONDITIONS:
        of = [row for row in rows if row.condition == condition]
        out["conditions"][condition] = _condition(of, right, signature)
    pairs: dict[tuple[str, str], dict[str, float]] = {}
    for row, value in right.items():
        pairs.setdefault((row.participant, row.item_id), {})[row.condition] = value
    both = {key: held for key, held in pairs.items() if len(held) == len(CONDITIONS)}
    gains = [held["open"] - held["closed"] for held in both.values()]
    out["gain"] = _mean(gains, [item for _, item in both], signature)
    return out


def write_baseline(folder: Path, paths: Sequence[Path], dataset: Dataset) -> list[str]:
    """Write the figures of result files to baseline.json in `folder`; returns lines to print.

    Without any file the figures are null: that is how nobody's answers look.
    """
    held = figures(read_results(paths, dataset), dataset)
    made_folder(folder)
    write_json(folder / "baseline.json", held)
    lines = []
    for condition, one in held["conditions"].items():
        accuracy = one["accuracy"]
        if accuracy["value"] is None:
            lines.append(f"{condition} book: no figure, {accuracy['reason']}")
            continue
        low, high = accuracy["ci95"] or (math.nan, math.nan)
        within = f"95% {low:.1%} to {high:.1%}" if accuracy["ci95"] else accuracy["interval"]
        lines.append(
            f"{condition} book: {accuracy['value']:.1%} right ({within}), "
            f"{accuracy['n']} questions, {one['participants']} practitioners, "
            f"{one['answers']} answers"
        )
    made = f"figures of the {len(paths)} results named: {folder / 'baseline.json'}"
    return [*lines, f"{made}; name every result again when more come"]


def _condition(
    rows: Sequence[Answered], right: Mapping[Answered, float], signature: str
) -> dict[str, Any]:
    counted = [row for row in rows if row in right]
    seconds = [row.seconds for row in counted if row.seconds is not None]
    return {
        "accuracy": _mean([right[r] for r in counted], [r.item_id for r in counted], signature),
        "participants": len({row.participant for row in counted}),
        "answers": len(counted),
        "left_open": len(rows) - len(counted),
        "cannot_tell": sum(row.answer == CANNOT_TELL for row in counted),
        "seconds_median": statistics.median(seconds) if seconds else None,
    }


def _right(row: Answered, dataset: Dataset) -> float:
    return float(row.answer == getattr(dataset.by_id[row.item_id], "answer"))  # noqa: B009


def _mean(values: Sequence[float], items: Sequence[str], signature: str) -> dict[str, Any]:
    if not values:
        return undefined("no practitioner has answered yet").with_(signature=signature).to_json()
    estimate = stats.Pooled.of_means(values, items).estimate("questions")
    return estimate.with_(signature=signature).to_json()
