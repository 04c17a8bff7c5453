"""What answers cost: tokens, seconds and money, per question and per correct answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hk_fs_bench.runs import Run

TOKENS = {
    "input": "input_tokens",
    "cached_input": "cached_input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
}
PER_CALL = "latency of the answering call, without queue and back-off"
NOT_KNOWN = "not known for any answer"

Row = Mapping[str, Any]
Value = Callable[[Row], float | None]


def costs(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    """The figures `tokens`, `seconds`, `usd` of one task's answers, means per answer.

    Each has `mean` and `n`, the answers for which it is known; `reason` where it is for none.
    Output tokens are all that was generated, reasoning included.
    """
    return {
        "tokens": {name: mean(rows, _usage(field)) for name, field in TOKENS.items()},
        "seconds": _seconds(run, rows),
        "usd": _usd(run, rows),
    }


def per_correct(figures: Mapping[str, Any], correct: float) -> dict[str, Any]:
    """Tokens, seconds and USD for each correct answer: all of a task's over its `correct` ones."""
    tokens = figures["tokens"]
    both = (
        {"mean": None}
        if None in (tokens["input"]["mean"], tokens["output"]["mean"])
        else {"mean": tokens["input"]["mean"] + tokens["output"]["mean"]}
    )
    found: dict[str, Any] = {}
    for name, figure in (
        ("tokens", both),
        ("seconds", figures["seconds"]),
        ("usd", figures["usd"]),
    ):
        if figure["mean"] is None:
            found[name] = {"value": None, "reason": figure.get("reason", NOT_KNOWN)}
        elif not correct:
            found[name] = {"value": None, "reason": "no answer is correct"}
        else:
            found[name] = {"value": figure["mean"] * figures["answered"] / correct}
    return found


def mean(rows: Sequence[Row], value: Value) -> dict[str, Any]:
    """The mean of what is known, with how many that is."""
    known = [v for v in map(value, rows) if v is not None]
    if not known:
        return {"mean": None, "n": 0, "reason": NOT_KNOWN}
    return {"mean": sum(known) / len(known), "n": len(known)}


def _usage(field: str) -> Value:
    return lambda row: row["token_usage"].get(field)


def _seconds(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    timing = run.manifest.get("timing") or {}
    if "total_seconds" in timing:
        average = timing["total_seconds"] / timing["requests"] if timing["requests"] else None
        figure = {"mean": average, "n": timing["requests"]}
        return figure | {"definition": timing["seconds_definition"]}
    each = mean(rows, _milliseconds)
    if each["mean"] is not None:
        each["mean"] /= 1000
    return each | {"definition": timing.get("seconds_definition", PER_CALL)}


def _milliseconds(row: Row) -> float | None:
    """Of a call, or a local batch's time shared out over its answers."""
    performance = row["performance"] or {}
    return performance.get("latency_ms", performance.get("batch_share_ms"))


def _usd(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    """Money at the run's own price, with the price's date; retries that failed are not in it."""
    if not (recorded := run.manifest.get("price")):
        return {"mean": None, "n": 0, "reason": "the run has no price"}
    from hk_fs_bench.api_models import Price

    price = Price.model_validate(recorded)
    figure = mean(rows, lambda row: price.cost(row["token_usage"]))
    return figure | {"price": recorded}
