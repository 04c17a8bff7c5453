"""A run's rows → parsed rows, each right or wrong where a key decides (items.jsonl)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench import answers, prompts
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import LETTERS, Dataset, unrotate
from hk_fs_bench.runs import Run
from hk_fs_bench.schema import MCQItem

_KEPT = ("task", "item_id", "variant", "sample", "finish_reason")
_STATUSES = ("ok", "no_answer", "infra_error")
# What a field of predictions.jsonl may hold beside null.
_TYPES: dict[str, type | tuple[type, ...]] = {
    "item_id": str,
    "variant": str,
    "sample": int,
    "output": str,
    "finish_reason": str,
    "token_usage": dict,
    "performance": dict,
    "option_logprobs": list,
    "answer_tokens": int,
}
# More than any count of tokens or milliseconds; beyond it sums lose their last digits.
_LARGEST = 1e12


def rows_of(run: Run, dataset: Dataset, task: prompts.Task) -> list[dict[str, Any]]:
    """The parsed rows of one task, in the order of their answers.

    Raises:
        UserError: a row of the wrong form, or about an item that the dataset lacks.
    """
    from_lm_eval = "lm_eval" in (run.manifest.get("software") or {})
    return [_parse(row, run, dataset, task, from_lm_eval) for row in run.of_task(task.name)]


def _check(row: Mapping[str, Any], run: Run, task: prompts.Task) -> None:
    if (fault := _fault(row, task)) is not None:
        where = f"{run.folder / 'predictions.jsonl'}: the row of {row['item_id']}"
        raise UserError(f"{where} has {fault}")


def _fault(row: Mapping[str, Any], task: prompts.Task) -> str | None:
    """What a row has that none may have, or None."""
    if row.get("status") not in _STATUSES:
        return f"the status {row.get('status')!r}, none of {_STATUSES}"
    for name, kind in _TYPES.items():
        value = row.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            return f"{name} {str(value)[:60]!r}, of the wrong type"
    counts = [*(row.get("token_usage") or {}).values(), row.get("answer_tokens")]
    counts += (row.get("performance") or {}).values()
    logprobs = row.get("option_logprobs") or []
    if not all(n is None or (_is_number(n) and 0 <= n <= _LARGEST) for n in counts) or not all(
        _is_number(n) and not math.isnan(n) for n in logprobs
    ):
        return "a token count, time or probability that is no number, or none that one can be"
    if logprobs and len(logprobs) != len(LETTERS):
        return f"{len(logprobs)} option_logprobs, not 4"
    by_probability = task.output_type == "multiple_choice"
    if row["status"] == "ok" and bool(logprobs) != by_probability:
        # They would decide in place of what the model wrote.
        return "no option_logprobs" if by_probability else f"option_logprobs under {task.name}"
    if row.get("sample") is not None and row["sample"] < 0:
        return f"the sample {row['sample']}; samples count from 0"
    variants = [f"rot{turn}" for turn in range(task.rotations)] if task.rotations > 1 else [""]
    if (row.get("variant") or "") not in variants:
        return f"the variant {row.get('variant')!r}, none of {variants} of {task.name}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parse(
    row: Mapping[str, Any], run: Run, dataset: Dataset, task: prompts.Task, from_lm_eval: bool
) -> dict[str, Any]:
    _check(row, run, task)
    item = dataset.by_id.get(row["item_id"])
    if item is None:
        raise UserError(f"the run has an answer to {row['item_id']}, which the dataset lacks")
    if isinstance(item, MCQItem) != (task.subset == "mcq"):
        raise UserError(f"the run has an answer to {row['item_id']} under {task.name}")
    out = {k: row.get(k) for k in _KEPT} | {"variant": row.get("variant") or ""}
    out |= {"sample": row.get("sample") or 0}
    out |= {"token_usage": row.get("token_usage") or {}, "performance": row.get("performance")}
    out |= {k: row.get(k) for k in ("answer_tokens", "sources_used", "contaminated")}
    if row["status"] == "infra_error":
        return out | {"status": "infra_error", "cause": row.get("cause")}
    if row["status"] == "no_answer":
        try:
            status = answers.status_of_cause(row.get("cause") or "")
        except ValueError as error:
            raise UserError(f"the row of {row['item_id']} under {task.name}: {error}") from None
        empty = {"value": None} if isinstance(item, MCQItem) else {"answer": None, "reason": None}
        parsed = {"status": status, "method": "cause", **empty}
        first = parsed
    elif row.get("option_logprobs"):
        parsed = first = _likeliest(row["option_logprobs"])
    else:
        parsed = first = _parse_text(row, item, row.get("finish_reason"))
        if from_lm_eval:
            first = _parse_text(row, item, None)
    out |= parsed
    # lm-eval's own filters can't know why an answer ended; what that changes is counted.
    out["changed_by_finish_reason"] = from_lm_eval and parsed != first
    if isinstance(item, MCQItem):
        out["value"] = unrotate(parsed["value"], out["variant"])
        out["correct"] = out["value"] == item.answer
    return out


def _likeliest(logprobs: Sequence[float]) -> dict[str, Any]:
    """The letter of the highest probability; where two have it, neither was chosen."""
    best = [letter for letter, p in zip(LETTERS, logprobs, strict=True) if p == max(logprobs)]
    status = "valid" if len(best) == 1 else "ambiguous"
    value = best[0] if len(best) == 1 else None
    return {"value": value, "method": "loglikelihood", "status": status}


def _parse_text(row: Mapping[str, Any], item: Any, finish_reason: str | None) -> dict[str, Any]:
    text = row.get("output")
    if not isinstance(item, MCQItem):
        found = answers.parse_oeq(text, finish_reason=finish_reason)
        return {"answer": found.answer, "reason": found.reason} | _how(found)
    turn = int((row.get("variant") or "rot0").removeprefix("rot"))
    choices = item.choices[turn:] + item.choices[:turn]
    choice = answers.parse_mcq(text, choices, finish_reason=finish_reason)
    return {"value": choice.value} | _how(choice)


def _how(parsed: Any) -> dict[str, str]:
    return {"method": parsed.method, "status": parsed.status}
