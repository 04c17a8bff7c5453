"""How far raters agree: with each other, with themselves, with what is known of the controls."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench.human.figures import FIELDS, Row, Unit, by_answer, level_of
from hk_fs_bench.human.rubric import MAJOR
from hk_fs_bench.stats import (
    Estimate,
    Pooled,
    icc_one_way,
    icc_two_way,
    krippendorff_alpha,
    proportion,
    reliability_within,
    variance_components,
)
from hk_fs_bench.stats.estimate import undefined

# The paper's words for reliability (Koo and Li 2016, Journal of Chiropractic Medicine 15:155).
PAPER_CLASSES = ((0.5, "poor"), (0.75, "moderate"), (0.9, "good"), (math.inf, "excellent"))


def paper_class(value: float) -> str:
    """The paper's word for a reliability."""
    return next(name for bound, name in PAPER_CLASSES if value < bound)


def agreement(rows: Sequence[Row], dimension: str) -> dict[str, Any]:
    """Every figure of how far raters agree on one dimension of models' answers.

    Controls and second looks are left out: answers that are meant to be plainly good or bad would
    make any raters look reliable.

    Returns:
        `single` ICC(1,1) and `average` ICC(1,k); `alpha`, ordinal; `two_way` or why it does not
        apply; `components`; `within`, the reliability of what tells the answers to one question
        apart; `ceiling`, how far a faultless metric could correlate with these scores;
        `paper_class`; `ratings_per_answer` {count: answers}.
    """
    table = by_answer(rows, dimension)
    rated = [list(own.values()) for own in table.values()]
    items = [item for _, item in table]
    average = icc_one_way(rated, average=True, unit="answers", clusters=items)
    # Answers to one question that the same raters rated: all of them, or a block.
    blocks: dict[tuple[str, frozenset[str]], dict[str, Mapping[str, float]]] = {}
    for (run, item), own in table.items():
        blocks.setdefault((item, frozenset(own)), {})[run] = own
    within = reliability_within(blocks, "questions", {block: block[0] for block in blocks})
    parts = variance_components(table, {unit: unit[1] for unit in table}, unit="answers")
    counts, one = Counter(map(len, rated)), single(rows, dimension)
    return {
        "single": one.to_json(),
        "average": average.to_json(),
        "alpha": krippendorff_alpha(rated, unit="answers", clusters=items).to_json(),
        "two_way": two_way(table).to_json(),
        "within": within.to_json(),
        "components": {name: one.to_json() for name, one in parts.items()},
        "ceiling": {
            "answers": ceiling(average).to_json(),
            "within": ceiling(within).to_json(),
        },
        "paper_class": None if one.value is None else paper_class(one.value),
        "ratings_per_answer": {str(k): counts[k] for k in sorted(counts)},
    }


def single(rows: Sequence[Row], dimension: str) -> Estimate:
    """ICC(1,1) of models' answers."""
    table = by_answer(rows, dimension)
    rated = [list(own.values()) for own in table.values()]
    return icc_one_way(rated, unit="answers", clusters=[item for _, item in table])


def two_way(table: Mapping[Unit, Mapping[str, float]]) -> Estimate:
    """ICC(A,1), which only the same raters on every answer allow; else the reason."""
    found = icc_two_way({f"{run} {item}": own for (run, item), own in table.items()})
    raters = {rater for own in table.values() for rater in own}
    empty = len(raters) * len(table) - sum(map(len, table.values()))
    if found.value is None and empty:
        why = (
            f"not the same raters throughout: {empty} of {len(raters) * len(table)} pairs of rater "
            "and answer have no rating, so the two-way forms do not apply; use the one-way form"
        )
        return found.with_(reason=why, unit="answers")
    return found.with_(unit="answers")


def ceiling(reliability: Estimate) -> Estimate:
    """The correlation that a metric without any fault would have with scores so reliable.

    The square root of the reliability (Spearman 1904, American Journal of Psychology 15:72): exact
    for Pearson's r, near it for Spearman's rho.
    """
    # What rounding leaves of 0 is 0.
    if reliability.value is None or round(reliability.value, 9) <= 0:
        why = reliability.reason or "the reliability is not above 0"
        return undefined(why, reliability.n, reliability.unit)
    interval = reliability.ci95
    bounds = interval and (math.sqrt(max(0.0, interval[0])), math.sqrt(max(0.0, interval[1])))
    how = "of the reliability's bounds" if bounds else "none"
    return Estimate(math.sqrt(reliability.value), reliability.n, reliability.unit, bounds, how)


def repeats(rows: Sequence[Row], dimension: str) -> dict[str, Any]:
    """Raters beside themselves: the answers that came again late in a batch.

    Returns:
        `same_level`, `mean_gap` (of scores), `icc`, each over `pairs` of looks.
    """
    fields = FIELDS[dimension]
    first = {(row["rater"], row["candidate"]): row for row in rows if not row["repeat"]}
    pairs = [
        (first[row["rater"], row["repeat_of"]], row)
        for row in rows
        if row["repeat"] and (row["rater"], row["repeat_of"]) in first
    ]
    same = sum(level_of(a, dimension) == level_of(b, dimension) for a, b in pairs)
    gaps = Pooled.of_means(
        [abs(a[fields.score] - b[fields.score]) for a, b in pairs], range(len(pairs))
    )
    icc = icc_one_way([(a[fields.score], b[fields.score]) for a, b in pairs], unit="pairs")
    return {
        "pairs": len(pairs),
        "same_level": proportion(same, len(pairs), "pairs", "no answer was seen twice").to_json(),
        "mean_gap": gaps.estimate("pairs").to_json(),
        "icc": icc.to_json(),
    }


def controls(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Whether raters found the blind expert-written and known-bad answers.

    An expert-written answer is `found` where its rater saw no serious fault in its accuracy and
    missed no essential point, a known-bad one where they did. Of each kind also the mean scores:
    the expert-written answers' are a human yardstick on the same scale.
    """
    result = {}
    for kind in ("expert", "known_bad"):
        own = [row for row in rows if row["answer_kind"] == kind and not row["repeat"]]
        found = sum(_faulty(row) == (kind == "known_bad") for row in own)
        result[kind] = {
            "found": proportion(found, len(own), "ratings", "the study has none").to_json(),
            "answers": len({row["candidate"] for row in own}),
            **{
                name: Pooled.of_means([r[f.score] for r in own], [r["item_id"] for r in own])
                .estimate()
                .to_json()
                for name, f in FIELDS.items()
            },
        }
    return result


def _faulty(row: Row) -> bool:
    return level_of(row, "accuracy") == MAJOR or bool(row["capped"])
