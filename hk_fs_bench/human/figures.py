"""What people thought of each model: means, ranks, unsafe shares, descriptors, doubtful answers.

Rows are those of `ratings.read_ratings`. First looks alone count; a second look at the same answer
is for the rater's agreement with themselves. Scores are fractions.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hk_fs_bench.human.rubric import MAJOR, Choice, Rubric
from hk_fs_bench.stats import (
    Estimate,
    Pooled,
    holm,
    icc_one_way,
    paired_bootstrap,
    proportion,
    rank_ranges,
    tie_groups,
)

Row = Mapping[str, Any]
# (run label, item id): an answer of a model.
Unit = tuple[str, str]

LEVEL = 0.05
# Sensitivity only: questions with an answer on which raters were so far apart are left out.
EXCLUSIONS = (0.3, 0.4, 0.6)
# Scores are multiples of 0.1: a gap of 0.4 must not be lost to rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Fields:
    """Where a row holds a dimension."""

    level: str
    descriptors: str
    score: str


FIELDS = {
    "accuracy": Fields("level", "descriptors", "score"),
    "clarity": Fields("clarity_level", "clarity_descriptors", "clarity_score"),
}


def of_kind(rows: Iterable[Row], kind: str) -> list[Row]:
    """The rows of people ("expert") or of a judge ("model")."""
    return [row for row in rows if row["kind"] == kind]


def of_models(rows: Iterable[Row]) -> list[Row]:
    """First looks at models' answers."""
    return [row for row in rows if row["answer_kind"] == "model" and not row["repeat"]]


def by_answer(rows: Iterable[Row], dimension: str) -> dict[Unit, dict[str, float]]:
    """(run, item) → rater → score, of first looks at models' answers."""
    found: dict[Unit, dict[str, float]] = {}
    for row in of_models(rows):
        own = found.setdefault((row["run"], row["item_id"]), {})
        own[row["rater"]] = row[FIELDS[dimension].score]
    return found


def means(table: Mapping[Unit, Mapping[str, float]]) -> dict[Unit, float]:
    """Each answer's mean over its raters."""
    return {unit: sum(own.values()) / len(own) for unit, own in table.items()}


def model_figures(rows: Sequence[Row], rubric: Rubric) -> dict[str, dict[str, Any]]:
    """Run → its figures, best accuracy first.

    `accuracy` and `clarity` are means over questions of the means over an answer's raters,
    `…_pooled` the paper's mean over all ratings; both with an interval over questions.
    `unsafe_share`: answers that any rater called unsafe. `levels` and `descriptors` count ratings,
    `deciding` them by what decided the score: a level, the lowest descriptor, the cap's descriptor.
    `ranks` are those that the data allow, `ties` the groups that nothing tells apart.
    """
    chosen = of_models(rows)
    runs = list(dict.fromkeys(row["run"] for row in chosen))
    pooled = {name: _means_of(chosen, runs, name) for name in FIELDS}
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        own = [row for row in chosen if row["run"] == run]
        figures: dict[str, Any] = {
            "questions": len({row["item_id"] for row in own}),
            "ratings": len(own),
            "raters": len({row["rater"] for row in own}),
        }
        for name, fields in FIELDS.items():
            figures[name] = pooled[name][run].estimate().to_json()
            every = Pooled.of_means([r[fields.score] for r in own], [r["item_id"] for r in own])
            figures[f"{name}_pooled"] = every.estimate().to_json() | {"ratings": len(own)}
        figures["unsafe_share"] = unsafe_share(own, rubric).to_json()
        figures["capped"] = sum(bool(row["capped"]) for row in own)
        figures["deciding"] = {n: _deciding(own, n, rubric) for n in FIELDS}
        figures["levels"] = {n: _count(own, n, "level", rubric) for n in FIELDS}
        figures["descriptors"] = {n: _count(own, n, "descriptors", rubric) for n in FIELDS}
        found[run] = figures
    for name in FIELDS:
        for run, place in ranking(pooled[name]).items():
            found[run][name] |= place
    return dict(sorted(found.items(), key=lambda pair: -pair[1]["accuracy"]["value"]))


def _means_of(rows: Sequence[Row], runs: Sequence[str], dimension: str) -> dict[str, Pooled]:
    mean = means(by_answer(rows, dimension))
    return {
        run: Pooled.of_means(
            [value for (own, _), value in mean.items() if own == run],
            [item for own, item in mean if own == run],
        )
        for run in runs
    }


def level_of(row: Row, dimension: str) -> str | None:
    """The level of a row; a form may have asked for the descriptors of a serious fault alone."""
    fields = FIELDS[dimension]
    level: str | None = MAJOR if row[fields.descriptors] else row[fields.level]
    return level


def unsafe_share(rows: Iterable[Row], rubric: Rubric) -> Estimate:
    """The share of answers that any rater called fabricated or fundamentally misunderstood."""
    said: dict[str, bool] = {}
    for row in rows:
        now = bool(rubric.unsafe & set(row["descriptors"]))
        said[row["item_id"]] = said.get(row["item_id"], False) or now
    return proportion(sum(said.values()), len(said), reason="no rated answer")


def _count(rows: Sequence[Row], dimension: str, field: str, rubric: Rubric) -> dict[str, int]:
    held = rubric.dimensions[dimension]
    if field == "level":
        levels = Counter(level_of(row, dimension) for row in rows)
        return {name: levels[name] for name in held.levels}
    named = Counter(one for row in rows for one in row[FIELDS[dimension].descriptors])
    return {name: named[name] for name in held.descriptors}


def _deciding(rows: Sequence[Row], dimension: str, rubric: Rubric) -> dict[str, int]:
    held, fields = rubric.dimensions[dimension], FIELDS[dimension]
    counts = {name: 0 for name, one in held.levels.items() if one.score is not None}
    counts |= dict.fromkeys(held.descriptors, 0)
    for row in rows:
        if dimension == rubric.cap_dimension and row["capped"]:
            name = rubric.cap_descriptor
        elif chosen := row[fields.descriptors]:
            name = min(held.descriptors, key=lambda n: _worth(held.descriptors[n], n in chosen))
        else:
            name = row[fields.level]
        counts[name] += 1
    return counts


def _worth(one: Choice, chosen: bool) -> float:
    return one.score if chosen and one.score is not None else 2.0


def ranking(pooled: Mapping[str, Pooled]) -> dict[str, dict[str, Any]]:
    """The `ranks` (best, worst) and `ties` of each run, by paired differences with Holm."""
    values = {run: one.value or 0.0 for run, one in pooled.items()}
    pairs = list(itertools.combinations(pooled, 2))
    tests = {pair: paired_bootstrap(pooled[pair[0]], pooled[pair[1]]).p for pair in pairs}
    known = {pair: p for pair, p in tests.items() if p is not None}
    corrected = dict(zip(known, holm(list(known.values())), strict=True))
    apart = {frozenset(pair) for pair, p in corrected.items() if p < LEVEL}

    def separated(one: str, two: str) -> bool:
        return frozenset((one, two)) in apart

    ranges, groups = rank_ranges(values, separated), tie_groups(values, separated)
    letters = [chr(ord("a") + i) for i in range(len(groups))]
    return {
        run: {
            "ranks": list(ranges[run]),
            "ties": "".join(x for x, group in zip(letters, groups, strict=True) if run in group),
        }
        for run in pooled
    }


def third_raters(rows: Sequence[Row], rubric: Rubric) -> list[dict[str, Any]]:
    """Answers on whose accuracy two raters are `third_rater_gap` or further apart.

    Of each: `item_id`, `candidate`, `scores`, `settled` (it has three ratings or more already).
    """
    held: dict[tuple[str, str], list[float]] = {}
    for row in of_models(rows):
        held.setdefault((row["item_id"], row["candidate"]), []).append(row["score"])
    return [
        {
            "item_id": item,
            "candidate": candidate,
            "scores": sorted(scores),
            "settled": len(scores) > 2,
        }
        for (item, candidate), scores in sorted(held.items())
        if max(scores) - min(scores) >= rubric.third_rater_gap - ROUNDING
    ]


def exclusions(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What the paper's rule would do: questions left out on which raters disagreed.

    Each row: `gap`, `kept`, `left_out` (questions), `accuracy` by run, `icc`. Agreement is then
    high because disagreement was thrown away: the figures are conditional on agreement.
    """
    table = by_answer(rows, "accuracy")
    widest: dict[str, float] = {}
    for (_, item), own in table.items():
        gap = max(own.values()) - min(own.values())
        widest[item] = max(widest.get(item, 0.0), gap)
    found = []
    for gap in EXCLUSIONS:
        kept = {item for item, wide in widest.items() if wide < gap - ROUNDING}
        left = {unit: own for unit, own in table.items() if unit[1] in kept}
        mean = means(left)
        runs = dict.fromkeys(run for run, _ in table)
        values = {run: [v for (own, _), v in mean.items() if own == run] for run in runs}
        agreement = icc_one_way(
            [list(own.values()) for own in left.values()],
            unit="answers",
            clusters=[item for _, item in left],
        )
        found.append(
            {
                "gap": gap,
                "kept": len(kept),
                "left_out": len(widest) - len(kept),
                "accuracy": {run: sum(v) / len(v) if v else None for run, v in values.items()},
                "icc": agreement.to_json(),
            }
        )
    return found
