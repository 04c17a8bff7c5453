"""What a submission says of its own scores, and how that stands to what is recomputed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hk_fs_bench.leaderboard import safe_text
from hk_fs_bench.metrics import bertscore
from hk_fs_bench.stats.intervals import Z95

# Figures of a task that a submission states; those of open answers stand under `metrics`.
COUNTS = ("answered", "readable", "statuses", "tokens", "seconds", "usd")
FIGURES = ("accuracy", "accuracy_on_valid", "non_conservative")
# Recomputed only by the full check: one takes a quarter of a minute, one an encoder.
RECORDED = ("meteor", "bertscore_f1")
_FIGURE = ("value", "n", "unit", "ci95", "interval", "p", "test", "reason", "signature")
_MEAN = ("mean", "n", "unit", "ci95", "interval", "reason", "definition", "signature")
_RANGES = {"meteor": (0.0, 1.0), "bertscore_f1": (-1.0, 1.0)}
# METEOR over the corpus is no mean of its rows, but near it: half a point apart over 100 answers.
_METEOR_FROM_MEAN = 0.03
# How much wider or narrower a bootstrap's interval may be than the normal one of the rows.
_WIDTH = 4
_NOT_ASKED = "name its encoder with --bertscore-model"

Figures = Mapping[str, Any]


def is_recorded(metric: str) -> bool:
    """Whether a metric is one that the default check takes as it stands."""
    return metric.split(":")[0] in RECORDED


def of_scores(scores: Figures, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The claims of a run: from its scores.json, and its items.jsonl by task in the fixed order.

    Raises:
        KeyError, TypeError: the file is not of today's form.
    """
    claims: dict[str, Any] = {}
    for task, figures in scores["tasks"].items():
        claim: dict[str, Any] = {"signature": figures["signature"]}
        for name in COUNTS:
            claim[name] = _bare(figures[name])
        for name in FIGURES:
            if name in figures:
                claim[name] = _only(figures[name], _FIGURE)
        if "metrics" in figures:
            had = {n: f for n, f in figures["metrics"].items() if f["value"] is not None}
            had = {n: f for n, f in had.items() if not n.startswith("key_points")}
            claim["metrics"] = {name: _only(figure, _FIGURE) for name, figure in had.items()}
            claim["recorded_rows"] = {
                name: [row["metrics"].get(name) for row in rows[task] if "metrics" in row]
                for name in had
                if is_recorded(name)
            }
        claims[task] = claim
    return claims


def in_order(rows: Sequence[Figures]) -> list[Figures]:
    """A task's answers in an order that does not depend on who answered first."""
    return sorted(
        (row for row in rows if row["status"] != "infra_error"),
        key=lambda row: (row["item_id"], row["variant"] or "", row["sample"] or 0),
    )


def row_faults(
    claims: Mapping[str, Figures], values: Mapping[str, Mapping[str, Sequence[Any]]]
) -> Iterator[str]:
    """Recorded values of single answers that differ from the recomputed ones."""
    tolerances = safe_text.settings()["tolerances"]
    for task, claim in claims.items():
        for name, stated in (claim.get("recorded_rows") or {}).items():
            own = values.get(task, {}).get(name)
            if own is None or len(own) != len(stated) or None in own:
                continue
            loose = tolerances["bertscore" if name.startswith("bertscore") else "recomputed"]
            pairs = enumerate(zip(stated, own, strict=True), 1)
            wrong = [(n, a, b) for n, (a, b) in pairs if _far(a, b, loose)]
            if wrong:
                number, a, b = wrong[0]
                yield (
                    f"{task}: recorded_rows.{name}: {len(wrong)} values differ from the recomputed "
                    f"ones; the first, number {number}: stated {a}, recomputed {b}"
                )


def _far(stated: Any, own: Any, tolerance: float) -> bool:
    return not math.isclose(stated or 0.0, own, rel_tol=tolerance, abs_tol=tolerance)


def _bare(value: Any) -> Any:
    """A count, or a mean (or a mapping of them) without what stands elsewhere, as the price."""
    if not isinstance(value, Mapping):
        return value
    if "mean" in value:
        return _only(value, _MEAN)
    return {name: _bare(inner) for name, inner in value.items()}


def _only(figure: Figures, names: Sequence[str]) -> dict[str, Any]:
    return {name: figure[name] for name in names if name in figure}


def compare(
    claims: Mapping[str, Figures], scores: Figures, full: bool = False
) -> tuple[list[str], list[dict[str, Any]]]:
    """Faults, and the differences that an older signature excuses.

    Args:
        claims: a submission's `scores`.
        scores: the content of a scores.json, recomputed from its rows.
        full: METEOR and BERTScore are in it too, where they could be had.
    """
    faults: list[str] = []
    differences: list[dict[str, Any]] = []
    for task, claim in claims.items():
        mine = scores["tasks"][task]
        current = claim["signature"] == mine["signature"]
        for name in (*COUNTS, *FIGURES):
            if (name in claim) != (name in mine):
                what = "has no such figure" if name in claim else "it is missing"
                faults += [f"{task}: {name}: {what}"] if current else []
            elif name in claim:
                own = _only(mine[name], _FIGURE) if name in FIGURES else _bare(mine[name])
                _settle(task, name, claim, claim[name], own, current, faults, differences)
        for name, figure in (claim.get("metrics") or {}).items():
            own = (mine.get("metrics") or {}).get(name)
            if is_recorded(name):
                like = (mine.get("metrics") or {}).get("bleu4") or {}
                lines = _metric_faults(name, figure, claim, like.get("n") or mine["items"])
                faults += [f"{task}: {line}" for line in lines]
            if own is None or own["value"] is None:
                if not is_recorded(name) and current:
                    faults.append(f"{task}: {name} is no metric of this task")
                continue
            if is_recorded(name) and not full:
                continue
            # The board shows a recorded value as stated, so no older signature excuses it.
            same = is_recorded(name) or (
                current and figure.get("signature") == own.get("signature")
            )
            loose = safe_text.settings()["tolerances"]["bertscore"]
            tolerance = loose if name.startswith("bertscore") else None
            own = _only(own, _FIGURE)
            _settle(task, name, claim, figure, own, same, faults, differences, tolerance)
        for name in claim.get("recorded_rows") or ():
            if not is_recorded(name) or name not in (claim.get("metrics") or {}):
                faults.append(f"{task}: recorded_rows.{name} is of no metric that it states")
        for name, own in (mine.get("metrics") or {}).items():
            stated = name in (claim.get("metrics") or {})
            if own["value"] is not None and not stated and not is_recorded(name) and current:
                faults.append(
                    f"{task}: {name} is missing; score the run with all of the usual metrics"
                )
    return faults, differences


def unchecked(claims: Mapping[str, Figures], scores: Figures) -> Iterator[str]:
    """Of what only the full check recomputes, what it could not here, and why."""
    for task, claim in claims.items():
        for name in filter(is_recorded, claim.get("metrics") or {}):
            own = (scores["tasks"][task].get("metrics") or {}).get(name) or {}
            if own.get("value") is None:
                yield f"{task}: {name} was not recomputed: {own.get('reason') or _NOT_ASKED}"


def _settle(
    task: str,
    name: str,
    claim: Figures,
    stated: Any,
    own: Any,
    current: bool,
    faults: list[str],
    differences: list[dict[str, Any]],
    tolerance: float | None = None,
) -> None:
    """A fault for each unequal value where the signature is today's, else one logged difference."""
    tolerance = tolerance or safe_text.settings()["tolerances"]["recomputed"]
    unequal = list(_unequal(stated, own, name, tolerance))
    if current:
        faults += [f"{task}: {place}: stated {a}, recomputed {b}" for place, a, b in unequal]
    elif unequal and name not in COUNTS and stated["value"] != own["value"]:
        differences.append(
            {
                "task": task,
                "figure": name,
                "claimed": stated["value"],
                "recomputed": own["value"],
                "claimed_signature": claim["signature"],
            }
        )


def _unequal(stated: Any, own: Any, place: str, tolerance: float) -> Iterator[tuple[str, Any, Any]]:
    """Every place where what is stated differs by more than the tolerance.

    A field that is not stated is none of these: figures gain fields, and old claims stay.
    """
    if isinstance(stated, Mapping) and isinstance(own, Mapping):
        for name in stated:
            if name in ("signature", "definition"):
                continue
            yield from _unequal(stated[name], own.get(name), f"{place}.{name}", tolerance)
    elif isinstance(stated, list) and isinstance(own, list) and len(stated) == len(own):
        for number, pair in enumerate(zip(stated, own, strict=True)):
            yield from _unequal(*pair, f"{place}[{number}]", tolerance)
    elif _is_number(stated) and _is_number(own):
        if not math.isclose(stated, own, rel_tol=tolerance, abs_tol=tolerance):
            yield place, stated, own
    elif stated != own:
        yield place, stated, own


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _column(kind: str, signature: str) -> str:
    """The name of a metric's column by its signature."""
    if kind != "bertscore_f1":
        return kind
    parts = dict(part.split(":", 1) for part in signature.split("|") if ":" in part)
    return bertscore.column(parts.get("model", "").split("@")[0], parts.get("layer"))


def _metric_faults(name: str, figure: Figures, claim: Figures, items: int) -> Iterator[str]:
    """What is wrong with a metric that is taken as it stands: name, n, range, interval, mean."""
    value, kind = figure["value"], name.split(":")[0]
    low, high = _RANGES[kind]
    rows = (claim.get("recorded_rows") or {}).get(name)
    if value is None or not str(figure.get("signature")).startswith(f"{kind}|"):
        yield f"{name} has no value, or no signature of its own; leave it out"
        return
    if name != (column := _column(kind, str(figure["signature"]))):
        yield f"{name}: by its signature it is {column}"
    if not low <= value <= high:
        yield f"{name}: {value} lies outside {low:g} to {high:g}"
    if (interval := figure["ci95"]) is not None:
        if not low <= interval[0] < interval[1] <= high:
            yield f"{name}: {interval} is no interval between {low:g} and {high:g}"
        elif not interval[0] <= value <= interval[1]:
            yield f"{name}: {value} lies outside its own interval {interval}"
    if figure["n"] != items or figure["unit"] != "questions":
        yield f"{name}: n is {figure['n']} {figure['unit'][:40]}, of {items} questions"
    if not rows or len(rows) != claim["answered"] or None in rows:
        yield f"{name}: recorded_rows has {len(rows or [])} values for {claim['answered']} answers"
        return
    if not all(low <= row <= high for row in rows):
        yield f"{name}: a row lies outside {low:g} to {high:g}"
    mean = math.fsum(rows) / len(rows)
    spread = math.sqrt(math.fsum((row - mean) ** 2 for row in rows) / len(rows))
    if figure["ci95"] is not None and spread > 1e-9 and len(rows) == items:
        times = (figure["ci95"][1] - figure["ci95"][0]) / (2 * Z95 * spread / math.sqrt(len(rows)))
        if not 1 / _WIDTH <= times <= _WIDTH:
            yield f"{name}: the interval is {times:.2g} times as wide as its rows make it"
    tolerance = safe_text.settings()["tolerances"]["recomputed"]
    if kind == "meteor":
        tolerance = _METEOR_FROM_MEAN
    if abs(mean - value) > tolerance:
        yield f"{name}: stated {value}, its rows have the mean {mean}"
