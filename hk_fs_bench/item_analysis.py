"""Items seen through the runs that answered them: which are hard, which don't discriminate, which
may have a wrong key. What is listed here is read again by people; nothing is rekeyed by vote."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hk_fs_bench.items import LETTERS, Dataset
from hk_fs_bench.metrics.mcq import by_question, is_correct
from hk_fs_bench.schema import MCQItem
from hk_fs_bench.scoring import ScoredRun

FEWEST = 3
TOO_FEW = f"needs at least {FEWEST} runs"


def analyse(runs: Sequence[ScoredRun], dataset: Dataset, task: str) -> dict[str, Any]:
    """One multiple-choice task's items over the runs that asked it.

    Returns:
        items, hardest first, each with `n` (runs), `difficulty` (the share of right answers),
        `item_total` (correlation over runs with the score on the other items) or why there is
        none, `choices` and `none` (the share of answers for each letter, and for none), each run
        with the same weight; and `review`: what to read again, and why.
    """
    having = [one for one in runs if one.answered(task)]
    right = [by_question(one.answered(task), is_correct) for one in having]
    best = _best(right)
    items = [
        _item(cast(MCQItem, dataset.by_id[name]), having, right, [having[i] for i in best], task)
        for name in dict.fromkeys(name for own in right for name in own)
    ]
    items.sort(key=lambda item: (item["difficulty"], item["id"]))
    return {
        "task": task,
        "runs": len(having),
        "best_runs": len(best),
        "reason": None if len(having) >= FEWEST else TOO_FEW,
        "items": items,
        "review": [{"id": i["id"], "why": why} for i in items for why in i.pop("review")],
    }


def _best(right: Sequence[Mapping[str, float]]) -> list[int]:
    """The better half of the runs, by accuracy; none with too few runs.

    A run that answered less than half of what another did is none: a few questions make no rank.
    """
    most = max(map(len, right), default=0)
    whole = [i for i, own in enumerate(right) if 2 * len(own) >= most]
    if len(whole) < FEWEST:
        return []
    order = sorted(whole, key=lambda i: -sum(right[i].values()) / len(right[i]))
    return order[: math.ceil(len(whole) / 2)]


def _item(
    item: MCQItem,
    runs: Sequence[ScoredRun],
    right: Sequence[Mapping[str, float]],
    best: Sequence[ScoredRun],
    task: str,
) -> dict[str, Any]:
    shares = [_choices(one.answered(task), item.id) for one in runs]
    shares = [own for own in shares if own]
    rates = {
        letter: sum(own.get(letter, 0.0) for own in shares) / len(shares)
        for letter in (*LETTERS, None)
    }
    found: dict[str, Any] = {
        "id": item.id,
        "key": item.answer,
        "n": len(shares),
        "difficulty": rates[item.answer],
        "choices": {letter: rates[letter] for letter in LETTERS},
        "none": rates[None],
    }
    correlation, reason = _item_total(item.id, right)
    found |= {"item_total": correlation} | ({"reason": reason} if reason else {})
    why = []
    if correlation is not None and correlation < 0:
        why.append(f"item-total correlation {correlation:.2f}: better runs get it wrong more often")
    favourites = Counter(_favourite(one, task, item.id) for one in best)
    letter, n = favourites.most_common(1)[0] if favourites else (None, 0)
    if letter not in (None, item.answer) and 2 * n > len(best):
        why.append(f"{n} of the {len(best)} best runs chose {letter}; the key is {item.answer}")
    return found | {"review": why}


def _item_total(name: str, right: Sequence[Mapping[str, float]]) -> tuple[float | None, str | None]:
    """Correlation over runs of an item's score with the mean of the run's other items."""
    pairs = [
        (own[name], (sum(own.values()) - own[name]) / (len(own) - 1))
        for own in right
        if name in own and len(own) > 1
    ]
    if len(pairs) < FEWEST:
        return None, TOO_FEW
    x, y = zip(*pairs, strict=True)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y)
    if spread < 1e-18:
        return None, "no variance: all runs alike on it, or on the others"
    return sum((a - mx) * (b - my) for a, b in pairs) / math.sqrt(spread), None


def _choices(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str | None, float]:
    """What share of a run's answers to an item chose each letter, or none; empty without any."""
    counts = Counter(row["value"] for row in rows if row["item_id"] == name)
    return {letter: n / counts.total() for letter, n in counts.items()}


def _favourite(one: ScoredRun, task: str, name: str) -> str | None:
    """The option that a run chose most often for an item; None for none, or for two alike."""
    top = Counter(_choices(one.answered(task), name)).most_common(2)
    if not top or (len(top) > 1 and top[0][1] == top[1][1]):
        return None
    return top[0][0]
