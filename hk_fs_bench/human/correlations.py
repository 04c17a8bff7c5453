"""What automatic metrics are worth: rank correlation with people's scores, at three levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hk_fs_bench.human.figures import LEVEL, Unit
from hk_fs_bench.stats import Estimate, holm, smallest_rho, spearman, spearman_within
from hk_fs_bench.stats.estimate import undefined

LEVELS = ("within", "answers", "models")
# With fewer models a rank correlation moves in steps so large that a p would mislead.
FEWEST_MODELS = 10
TOO_FEW = f"no p and no interval below {FEWEST_MODELS} models: rho moves in large steps"

Values = Mapping[Unit, float]


def correlations(
    metrics: Mapping[str, Values], scores: Mapping[str, Values]
) -> list[dict[str, Any]]:
    """Spearman's rho of every metric with every dimension, level by level.

    `within` questions: does the metric order the answers to one question as people do; `answers`:
    over all answers, whole questions resampled; `models`: over the models' means. Only answers that
    have both count.

    Returns:
        A row each: `level`, `metric`, `dimension`, the estimate's fields, `p_holm` (within the
        level: all metrics, all dimensions), `smallest_rho` (the true rho that this test would find
        four times in five, at the first step of Holm's), `verdict` and its `says`.

    Args:
        metrics: metric → (run, item) → value.
        scores: dimension → (run, item) → people's mean score.
    """
    of: dict[str, Callable[[Values, Values], Estimate]] = {
        "within": _within,
        "answers": _answers,
        "models": _models,
    }
    found = []
    for level in LEVELS:
        rows = [
            (metric, dimension, of[level](values, score))
            for metric, values in metrics.items()
            for dimension, score in scores.items()
        ]
        tested = [i for i, (_, _, estimate) in enumerate(rows) if estimate.p is not None]
        corrected = holm([float(rows[i][2].p or 0.0) for i in tested])
        p_holm = dict(zip(tested, corrected, strict=True))
        for i, (metric, dimension, estimate) in enumerate(rows):
            seen = None
            if i in p_holm:
                seen = smallest_rho(estimate.more.get("se_z"), LEVEL / len(tested))
            row = {"level": level, "metric": metric, "dimension": dimension} | estimate.to_json()
            row |= {"p_holm": p_holm.get(i), "tests": len(tested), "smallest_rho": seen}
            found.append(row | verdict(row))
    return found


def verdict(row: Mapping[str, Any]) -> dict[str, str]:
    """`verdict` (evidence, contrary, none, untested, undefined) and what it `says`."""
    if row["value"] is None:
        return {"verdict": "undefined", "says": row["reason"]}
    if row["p_holm"] is None:
        return {"verdict": "untested", "says": row.get("untested") or "no p: too few to resample"}
    if row["p_holm"] < LEVEL:
        if row["value"] > 0:
            return {"verdict": "evidence", "says": "evidence of agreement with people"}
        return {
            "verdict": "contrary",
            "says": "evidence of the contrary: higher metric, lower score",
        }
    seen = row["smallest_rho"]
    limit = "" if seen is None else f"; a true rho below {seen:.2f} could easily be missed"
    return {"verdict": "none", "says": f"no evidence{limit}"}


def _pairs(values: Values, scores: Values) -> list[Unit]:
    return [unit for unit in scores if unit in values]


def _within(values: Values, scores: Values) -> Estimate:
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for unit in _pairs(values, scores):
        x, y = groups.setdefault(unit[1], ([], []))
        x.append(values[unit])
        y.append(scores[unit])
    return spearman_within(list(groups.values()))


def _answers(values: Values, scores: Values) -> Estimate:
    units = _pairs(values, scores)
    return spearman(
        [values[unit] for unit in units],
        [scores[unit] for unit in units],
        unit="answers",
        clusters=[item for _, item in units],
    )


def _models(values: Values, scores: Values) -> Estimate:
    runs: dict[str, tuple[list[float], list[float]]] = {}
    for unit in _pairs(values, scores):
        x, y = runs.setdefault(unit[0], ([], []))
        x.append(values[unit])
        y.append(scores[unit])
    if len(runs) < 3:
        return undefined("needs at least three models", len(runs), "models")
    means = [[sum(side) / len(side) for side in pair] for pair in runs.values()]
    found = spearman([x for x, _ in means], [y for _, y in means], unit="models")
    if len(runs) >= FEWEST_MODELS or found.value is None:
        return found
    return found.with_(p=None, test=None, ci95=None, interval="none", more={"untested": TOO_FEW})
