"""A judge beside people: agreement, costs, and what its ratings owe to order and length."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.human.correlations import Values
from hk_fs_bench.human.figures import Row, by_answer, means
from hk_fs_bench.stats import Estimate, Pooled, icc_one_way, spearman, spearman_within
from hk_fs_bench.stats.estimate import undefined

SUMMARY = "judge.json"
# In what order a judge saw candidates: as drawn, or reversed.
ORDERS = ("", "swapped")

# A pair of scores of one answer, and its question.
Pair = tuple[float, float, str]


def read_summaries(study: Path) -> dict[str, dict[str, Any]]:
    """Judge → what judges/*/judge.json says of its calls."""
    found = {}
    for path in sorted(study.glob(f"judges/*/{SUMMARY}")):
        try:
            held = json.loads(path.read_text("utf-8"))
            found[str(held["judge"])] = held
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(f"{path} can't be read; run human_eval.py judge again") from None
    return found


def judge_figures(
    people: Sequence[Row], judge: Sequence[Row], lengths: Values, dimension: str
) -> dict[str, Any]:
    """One judge's ratings beside people's, over the answers that it and two people rated.

    Returns:
        `answers`; `people` and `judge`, each with `icc` (of two ratings of an answer, two people's
        or the judge's and a person's), `gap` (mean distance of the two), `same` (share of equal
        scores); `lean` (the judge's score less people's mean); `rho_answers`, `rho_within` with
        people's mean; `length`: rho within questions of an answer's length with the judge's score,
        with people's, and with what the judge gives beyond people.
    """
    theirs, own = by_answer(people, dimension), means(by_answer(judge, dimension))
    both = {unit: list(r.values()) for unit, r in theirs.items() if unit in own and len(r) > 1}
    mean = {unit: sum(scores) / len(scores) for unit, scores in both.items()}
    among = [(*pair, u[1]) for u, r in both.items() for pair in itertools.combinations(r, 2)]
    with_judge = [(own[u], score, u[1]) for u, r in both.items() for score in r]
    lean = {unit: own[unit] - mean[unit] for unit in both}
    judged = {unit: own[unit] for unit in both}
    return {
        "answers": len(both),
        "people": _pairs(among),
        "judge": _pairs(with_judge),
        "lean": _mean(lean).to_json(),
        "rho_answers": spearman(
            list(mean.values()),
            list(judged.values()),
            unit="answers",
            clusters=[item for _, item in both],
        ).to_json(),
        "rho_within": _within(mean, judged).to_json(),
        "length": {
            "judge": _within(lengths, judged).to_json(),
            "people": _within(lengths, mean).to_json(),
            "beyond_people": _within(lengths, lean).to_json(),
        },
    }


def _pairs(pairs: Sequence[Pair]) -> dict[str, Any]:
    clusters = [item for _, _, item in pairs]
    scores = [(one, two) for one, two, _ in pairs]
    icc = icc_one_way(scores, unit="pairs", clusters=clusters)
    gaps = Pooled.of_means([abs(one - two) for one, two in scores], clusters)
    same = Pooled.of_means([float(abs(one - two) < 1e-9) for one, two in scores], clusters)
    return {
        "pairs": len(pairs),
        "icc": icc.to_json(),
        "gap": gaps.estimate().to_json(),
        "same": same.estimate().to_json(),
    }


def _mean(values: Values) -> Estimate:
    return Pooled.of_means(list(values.values()), [item for _, item in values]).estimate()


def _within(x: Values, y: Values) -> Estimate:
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for unit, value in y.items():
        if unit in x:
            one, two = groups.setdefault(unit[1], ([], []))
            one.append(x[unit])
            two.append(value)
    return spearman_within(list(groups.values()))


def position_bias(summary: Mapping[str, Any], dimension: str) -> dict[str, Any]:
    """What an answer gains by being shown earlier, from the questions shown in two orders.

    Returns:
        `earlier`: the mean of an answer's score where it stood earlier less that where it stood
        later, over questions (0 without bias); `changed`: the share of answers whose score is not
        the same in both orders, which order and chance do together.
    """
    seen: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for showing in summary["orders"]:
        seen.setdefault((showing["item_id"], showing["block"]), {})[showing["order"]] = showing
    gains: list[tuple[float, str]] = []
    changed: list[tuple[float, str]] = []
    for (item, _), orders in seen.items():
        if set(orders) != set(ORDERS):
            continue
        first, second = (_placed(orders[name], dimension) for name in ORDERS)
        for candidate, (place, score) in first.items():
            other_place, other = second.get(candidate, (place, None))
            if score is None or other is None:
                continue
            changed.append((float(abs(score - other) > 1e-9), item))
            if place != other_place:
                gain = score - other if place < other_place else other - score
                gains.append((gain, item))
    return {
        name: (
            Pooled.of_means([v for v, _ in pairs], [item for _, item in pairs]).estimate()
            if pairs
            else undefined("no question was read in two orders")
        ).to_json()
        for name, pairs in (("earlier", gains), ("changed", changed))
    }


def _placed(showing: Mapping[str, Any], dimension: str) -> dict[str, tuple[int, float | None]]:
    pairs = zip(showing["candidates"], showing[dimension], strict=True)
    return {candidate: (place, score) for place, (candidate, score) in enumerate(pairs)}
