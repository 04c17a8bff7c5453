"""A run's rows → parsed rows, each right or wrong where a key decides (items.jsonl)."""

from __future__ import annotations

from collections.abc import Mapping
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
_VARIANTS = ("", "rot0", "rot1", "rot2", "rot3")


def rows_of(run: Run, dataset: Dataset, task: prompts.Task) -> list[dict[str, Any]]:
    """The parsed rows of one task, in the order of their answers.

    Raises:
        UserError: a row of the wrong form, or about an item that the dataset lacks.
    """
    from_lm_eval = "lm_eval" in (run.manifest.get("software") or {})
    return [_parse(row, run, dataset, task, from_lm_eval) for row in run.of_task(task.name)]


def _check(row: Mapping[str, Any], run: Run) -> None:
    where = f"{run.folder / 'predictions.jsonl'}: the row of {row['item_id']}"
    if row.get("status") not in _STATUSES:
        raise UserError(f"{where} has the status {row.get('status')!r}, none of {_STATUSES}")
    for name, kind in _TYPES.items():
        if (value := row.get(name)) is not None and not isinstance(value, kind):
            raise UserError(f"{where} has {name} {str(value)[:60]!r}, of the wrong type")
    numbers = [*(row.get("token_usage") or {}).values(), *(row.get("option_logprobs") or [])]
    numbers += (row.get("performance") or {}).values()
    if any(n is not None and not isinstance(n, int | float) for n in numbers):
        raise UserError(f"{where} has a token count, time or probability that is no number")
    if row.get("option_logprobs") and len(row["option_logprobs"]) != len(LETTERS):
        raise UserError(f"{where} has {len(row['option_logprobs'])} option_logprobs, not 4")
    if row.get("variant") not in (None, *_VARIANTS):
        raise UserError(f"{where} has the variant {row['variant']!r}, none of {_VARIANTS}")


def _parse(
    row: Mapping[str, Any], run: Run, dataset: Dataset, task: prompts.Task, from_lm_eval: bool
) -> dict[str, Any]:
    _check(row, run)
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
        logprobs = row["option_logprobs"]
        value = LETTERS[logprobs.index(max(logprobs))]
        parsed = first = {"value": value, "method": "loglikelihood", "status": "valid"}
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
