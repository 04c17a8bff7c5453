"""Two and more scored runs side by side: what the data tell apart, and what they don't."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from hk_fs_bench.metrics import mcq
from hk_fs_bench.metrics.common import Scored
from hk_fs_bench.runs import key_of
from hk_fs_bench.schema import MCQItem
from hk_fs_bench.scoring import ScoredRun
from hk_fs_bench.stats import (
    RESAMPLES,
    Estimate,
    holm,
    paired_bootstrap,
    rank_ranges,
    tie_groups,
)

# Two runs are told apart where Holm's corrected p is below this.
LEVEL = 0.05
# So many answers that are all alike, letter for letter, come from one run.
_MANY = 10
# Shares of which a lower one is better.
_LOWER_IS_BETTER = ("non_conservative",)
# How often an answer cites is no quality.
_NO_QUALITY = ("cites",)
# Parts of a signature that two runs may differ in and be compared all the same.
FREE = ("chat_template",)

Difference = Callable[[ScoredRun, ScoredRun], Estimate]


def compare(runs: Sequence[ScoredRun], baseline: int | None = None) -> dict[str, Any]:
    """Every pair of runs, or each against `baseline` (an index), by task and metric.

    Returns:
        warnings; tasks → metric → `values` of each run, `pairs` (the difference with its interval,
        p and Holm's `p_holm` within this table, `separated`), `lower_is_better`, and without a
        baseline `ranks`
        (best and worst that each run may have) and `ties` (runs that nothing tells apart).
    """
    names = labels(runs)
    tasks: dict[str, Any] = {}
    for task in dict.fromkeys(task for one in runs for task in one.rows):
        having = {n: one for n, one in zip(names, runs, strict=True) if one.answered(task)}
        reference = None if baseline is None else names[baseline]
        if len(having) < 2 or (reference is not None and reference not in having):
            continue
        tasks[task] = {
            metric: _table(metric, task, having, difference, reference)
            for metric, difference in _differences(task, list(having.values())).items()
        }
    return {
        "runs": {name: one.run.folder.name for name, one in zip(names, runs, strict=True)},
        "baseline": None if baseline is None else names[baseline],
        "level": LEVEL,
        "warnings": _warnings(runs, names),
        "tasks": tasks,
    }


def label(model: Mapping[str, Any]) -> str:
    """A model in a mode, as tables name it."""
    parts = [str(model["id"])]
    if model.get("mode") not in (None, "none"):
        parts.append(f"thinking {model['mode']}")
    if model.get("search") not in (None, "off"):
        parts.append(f"search {model['search']}")
    # A name is data: no line break of it, or command to a terminal, reaches a table.
    return "".join(c if c.isprintable() else "\ufffd" for c in " · ".join(parts))


def labels(runs: Sequence[ScoredRun]) -> list[str]:
    """A name for each run, no two alike."""
    names = [label(one.run.manifest["model"]) for one in runs]
    out: list[str] = []
    for name, one in zip(names, runs, strict=True):
        unique = name if names.count(name) == 1 else f"{name} ({one.run.folder.name})"
        while unique in out:
            unique += "'"
        out.append(unique)
    return out


def _differences(task: str, runs: Sequence[ScoredRun]) -> dict[str, Difference]:
    """How each metric of a task is compared."""
    if task not in runs[0].open:
        items = cast("Mapping[str, MCQItem]", runs[0].items)
        found: dict[str, Difference] = {
            "accuracy": lambda a, b: mcq.difference(a.answered(task), b.answered(task))
        }
        if any(one.scores["tasks"][task]["non_conservative"]["n"] for one in runs):
            found["non_conservative"] = lambda a, b: mcq.non_conservative_difference(
                a.answered(task), b.answered(task), items
            )
        return found
    shared = [
        name
        for name in runs[0].open[task].metrics
        if name not in _NO_QUALITY
        and all(isinstance(one.open[task].metrics.get(name), Scored) for one in runs)
    ]

    def of(metric: str) -> Difference:
        return lambda a, b: paired_bootstrap(
            a.open[task].pooled(metric), b.open[task].pooled(metric)
        )

    return {metric: of(metric) for metric in shared}


def _table(
    metric: str,
    task: str,
    runs: Mapping[str, ScoredRun],
    difference: Difference,
    reference: str | None,
) -> dict[str, Any]:
    figures = {name: _figure(one, task, metric) for name, one in runs.items()}
    if reference is None:
        wanted = list(itertools.combinations(runs, 2))
    else:
        wanted = [(name, reference) for name in runs if name != reference]
    found = {pair: difference(runs[pair[0]], runs[pair[1]]) for pair in wanted}
    tested = {pair: e.p for pair, e in found.items() if e.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    apart = {frozenset(pair) for pair, p in corrected.items() if p < LEVEL}
    table: dict[str, Any] = {
        "values": figures,
        "lower_is_better": metric in _LOWER_IS_BETTER,
        "pairs": [
            {"first": pair[0], "second": pair[1]}
            | estimate.to_json()
            | {"p_holm": corrected.get(pair), "separated": frozenset(pair) in apart}
            for pair, estimate in found.items()
        ],
    }
    sign = -1 if table["lower_is_better"] else 1
    values = {name: sign * f["value"] for name, f in figures.items() if f["value"] is not None}
    if reference is None:

        def separated(one: str, two: str) -> bool:
            return frozenset((one, two)) in apart

        table["ranks"] = {n: list(r) for n, r in rank_ranges(values, separated).items()}
        table["ties"] = [list(group) for group in tie_groups(values, separated)]
    return table


def _figure(one: ScoredRun, task: str, metric: str) -> dict[str, Any]:
    figures = one.scores["tasks"][task]
    found = figures["metrics"][metric] if task in one.open else figures[metric]
    return {name: found.get(name) for name in ("value", "n", "unit", "ci95", "signature")}


def _texts(one: ScoredRun, task: str) -> list[tuple[Any, ...]]:
    rows = one.run.of_task(task)
    return sorted((*key_of(row)[1:], str(row.get("output"))) for row in rows)


def _warnings(runs: Sequence[ScoredRun], names: Sequence[str]) -> list[str]:
    """What makes a comparison unsafe."""
    found = [
        f"{name} is incomplete: its figures are over what it answered so far"
        for name, one in zip(names, runs, strict=True)
        if not one.scores["complete"]
    ]
    for task in dict.fromkeys(task for one in runs for task in one.rows):
        signatures: dict[str, set[str]] = {}
        for one in runs:
            if task in one.scores["tasks"]:
                for part in one.scores["tasks"][task]["signature"].split("|"):
                    key, _, value = part.partition(":")
                    signatures.setdefault(key, set()).add(value)
        found += [
            f"{task}: the runs differ in {key} ({', '.join(sorted(values))}), so their figures "
            "are not of one protocol"
            for key, values in signatures.items()
            if len(values) > 1 and key not in FREE
        ]
        having = [(name, one) for name, one in zip(names, runs, strict=True) if one.answered(task)]
        if (
            any(task in one.open for one in runs)
            and math.comb(len(having), 2) >= LEVEL * (RESAMPLES + 1) / 2
        ):
            found.append(
                f"{task}: {RESAMPLES} draws can't tell any two of {len(having)} runs apart after "
                "Holm's correction; compare fewer, or with --baseline"
            )
        found += [
            f"{task}: {a} and {b} gave the same answers letter for letter: is one a copy?"
            for (a, one), (b, two) in itertools.combinations(having, 2)
            if len(one.answered(task)) >= _MANY and _texts(one, task) == _texts(two, task)
        ]
        answered = {frozenset(row["item_id"] for row in one.answered(task)) for one in runs}
        if len(answered - {frozenset()}) > 1:
            found.append(
                f"{task}: the runs did not answer the same questions; each pair is compared on "
                "those that both answered"
            )
    return found
