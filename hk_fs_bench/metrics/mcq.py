"""Multiple-choice metrics over parsed rows: what `scoring` writes into items.jsonl."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench.answers import STATUSES
from hk_fs_bench.stats import wilson

READABLE = ("valid", "repaired")
Row = Mapping[str, Any]


def proportion(hits: float, n: int) -> dict[str, Any]:
    """A fraction with its n and Wilson 95% interval; value None with a reason for n = 0."""
    interval = wilson(hits, n)
    if interval is None:
        return {"value": None, "n": 0, "ci95": None, "reason": "no answer to count"}
    return {"value": hits / n, "n": n, "ci95": list(interval), "interval": "wilson"}


def accuracy(rows: Sequence[Row]) -> dict[str, Any]:
    """Correct over all answers; one that can't be read is wrong.

    Several samples of one prompt count as their mean: n is the number of prompts, because samples
    of one prompt are no independent answers.
    """
    samples: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        samples[row["item_id"], row.get("variant") or ""].append(row["correct"])
    return proportion(sum(sum(right) / len(right) for right in samples.values()), len(samples))


def by_sample(rows: Sequence[Row]) -> list[float]:
    """The accuracy of each sample alone, in their order."""
    samples: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        samples[row.get("sample") or 0].append(row["correct"])
    return [sum(right) / len(right) for _, right in sorted(samples.items())]


def accuracy_on_valid(rows: Sequence[Row]) -> dict[str, Any]:
    """Correct over the answers that could be read, the paper's figure in brackets."""
    return accuracy([row for row in rows if row["status"] in READABLE])


def status_counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many answers had each status, in the fixed order of the statuses."""
    counts = Counter(row["status"] for row in rows)
    return {status: counts[status] for status in STATUSES}


def consistency(rows: Sequence[Row], orders: int = 4) -> dict[str, Any]:
    """Share of questions whose answers name one option in all option orders.

    `rows` hold the option chosen in the item's own lettering; an order without a readable answer
    makes its question not alike. Questions not asked in every order are left out of n.
    """
    chosen: dict[str, list[str | None]] = defaultdict(list)
    for row in rows:
        chosen[row["item_id"]].append(row["value"])
    whole = [options for options in chosen.values() if len(options) == orders]
    return proportion(sum(None not in o and len(set(o)) == 1 for o in whole), len(whole))
