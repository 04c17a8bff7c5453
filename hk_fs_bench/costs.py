"""What answers cost: tokens, seconds and money, per question and per correct answer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hk_fs_bench.metrics.common import signature
from hk_fs_bench.runs import Run
from hk_fs_bench.stats import Pooled
from hk_fs_bench.stats.estimate import undefined
from hk_fs_bench.stats.intervals import Z95

TOKENS = {
    "input": "input_tokens",
    "cached_input": "cached_input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
}
PER_CALL = "latency of the answering call, without queue and back-off"
NOT_KNOWN = "not known for any answer"
NO_PRICE = "the run has no price"

Row = Mapping[str, Any]
Value = Callable[[Row], float | None]


def costs(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    """The figures `tokens`, `seconds`, `usd` of one task's answers, means per answer.

    Each has `mean` and `n`, the answers for which it is known, `unit` and `ci95`; `reason` where
    it is for none.
    Output tokens are all that was generated, reasoning included.
    """
    return {
        "tokens": {
            name: mean(rows, _usage(field), "tokens an answer") for name, field in TOKENS.items()
        },
        "seconds": _seconds(run, rows),
        "usd": _usd(run, rows),
    }


def per_correct(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    """Tokens, seconds and USD for each correct answer, over the answers whose cost is known.

    The interval is a bootstrap over questions, cost and correctness together.
    """
    import numpy as np

    found = {}
    for name, value in (("tokens", _tokens), ("seconds", _seconds_of(run)), ("usd", _usd_of(run))):
        known = [(cost, row) for row in rows if (cost := value(row)) is not None]
        signed = signature("per_correct", of="tokens in+out" if name == "tokens" else name)
        if not known or not any(row["correct"] for _, row in known):
            priceless = name == "usd" and not run.manifest.get("price")
            reason = NO_PRICE if priceless else "no answer is correct" if known else NOT_KNOWN
            found[name] = undefined(reason).with_(signature=signed).to_json()
            continue
        sums = np.array([(cost, row["correct"]) for cost, row in known], dtype=float)
        ratio = Pooled(sums, [row["item_id"] for _, row in known])
        found[name] = ratio.estimate().with_(signature=signed).to_json()
    return found


def _tokens(row: Row) -> float | None:
    both = [row["token_usage"].get(TOKENS[name]) for name in ("input", "output")]
    return None if None in both else sum(both)


def mean(rows: Sequence[Row], value: Value, unit: str) -> dict[str, Any]:
    """The mean of what is known, with how many answers that is.

    The interval is the normal one, the answers to one question taken as one.
    """
    known = [(row["item_id"], v) for row in rows if (v := value(row)) is not None]
    if not known:
        return {"mean": None, "n": 0, "unit": unit, "ci95": None, "reason": NOT_KNOWN}
    average = sum(v for _, v in known) / len(known)
    off: dict[str, float] = defaultdict(float)
    for question, v in known:
        off[question] += v - average
    figure = {"mean": average, "n": len(known), "unit": unit}
    if len(off) < 2:
        return figure | {"ci95": None, "interval": "none: one question"}
    spread = sum(d * d for d in off.values()) * len(off) / (len(off) - 1)
    half = Z95 * math.sqrt(spread) / len(known)
    ci95 = [max(0.0, average - half), average + half]
    return figure | {"ci95": ci95, "interval": "normal, over questions"}


def _usage(field: str) -> Value:
    return lambda row: row["token_usage"].get(field)


def _seconds(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    timing = run.manifest.get("timing") or {}
    if "total_seconds" in timing:
        average = timing["total_seconds"] / timing["requests"] if timing["requests"] else None
        figure = {"mean": average, "n": timing["requests"], "unit": "seconds an answer"}
        figure |= {"ci95": None, "interval": "none: known of the whole run alone"}
        return figure | {"definition": timing["seconds_definition"]}
    each = mean(rows, _seconds_of(run), "seconds an answer")
    return each | {"definition": timing.get("seconds_definition", PER_CALL)}


def _seconds_of(run: Run) -> Value:
    """A row's seconds: of its call, or a share of those of its local batch, or of the whole run."""
    timing = run.manifest.get("timing") or {}
    if "total_seconds" in timing:
        requests = timing["requests"]
        return lambda row: timing["total_seconds"] / requests if requests else None

    def seconds(row: Row) -> float | None:
        performance = row["performance"] or {}
        known = performance.get("latency_ms", performance.get("batch_share_ms"))
        return None if known is None else known / 1000

    return seconds


def _usd(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    """Money at the run's own price, with the price's date; retries that failed are not in it."""
    figure = mean(rows, _usd_of(run), "USD an answer")
    if not (recorded := run.manifest.get("price")):
        return figure | {"reason": NO_PRICE}
    return figure | {"price": recorded}


def _usd_of(run: Run) -> Value:
    if not (recorded := run.manifest.get("price")):
        return lambda row: None
    from hk_fs_bench.api_models import Price

    price = Price.model_validate(recorded)
    return lambda row: price.cost(row["token_usage"])
