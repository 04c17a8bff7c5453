"""The figures of one task of a run (scores.json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hk_fs_bench import __version__, answers, prompts
from hk_fs_bench.costs import costs, mean, per_correct
from hk_fs_bench.items import Dataset
from hk_fs_bench.metrics import breakdowns, mcq
from hk_fs_bench.open_metrics import OpenScores
from hk_fs_bench.runs import Run
from hk_fs_bench.schema import MCQItem
from hk_fs_bench.superseded import superseded_options

Row = Mapping[str, Any]


def figures_of(
    run: Run, task: prompts.Task, rows: Sequence[Row], dataset: Dataset, scored: OpenScores | None
) -> dict[str, Any]:
    """All figures of one task; `scored` are an open task's text metrics."""
    answered = [row for row in rows if row["status"] != "infra_error"]
    figures: dict[str, Any] = {
        "signature": signature(run, task),
        "items": len(dataset.items(task.subset)) * task.rotations,
        "prompts": len({(row["item_id"], row["variant"]) for row in rows}),
        "asked": len(rows),
        "answered": len(answered),
        "readable": sum(map(_is_readable, answered)),
        "statuses": mcq.status_counts(answered),
        "changed_by_finish_reason": sum(row["changed_by_finish_reason"] for row in answered),
        **costs(run, answered),
        "over_limit": _over_limit(answered, task.max_gen_toks),
        "contaminated": sum(bool(row["contaminated"]) for row in answered),
        "samples": len({row["sample"] for row in rows}) or 1,
    }
    if task.subset == "mcq":
        items = cast("Mapping[str, MCQItem]", dataset.by_id)
        figures |= _multiple_choice(answered, items)
        figures["per_correct"] = per_correct(run, answered)
    if task.rotations > 1:
        figures["consistency"] = mcq.consistency(answered, task.rotations).to_json()
    if scored is not None:
        figures["answer_words"] = mean(
            answered, lambda row: len((row["answer"] or "").split()), "words an answer"
        )
        figures |= scored.figures()
    return figures


def _is_readable(row: Row) -> bool:
    """Whether a row has an answer: of an open question, one that the limit cut counts as far as it
    goes, as it does for every metric."""
    if "answer" in row:
        return row["answer"] is not None
    return row["status"] in mcq.READABLE


def _multiple_choice(rows: Sequence[Row], items: Mapping[str, MCQItem]) -> dict[str, Any]:
    return {
        "accuracy": mcq.accuracy(rows).to_json(),
        "accuracy_on_valid": mcq.accuracy_on_valid(rows).to_json(),
        "accuracy_by_clause": mcq.accuracy_by_clause(rows, items).to_json(),
        "accuracy_by_sample": mcq.by_sample(rows),
        "non_conservative": mcq.non_conservative(rows, items).to_json(),
        "superseded": mcq.superseded(rows, superseded_options(items)).to_json(),
        "by": {
            field: breakdowns.by_field(rows, items, field, mcq.accuracy)
            for field in breakdowns.FIELDS
        },
    }


def _over_limit(rows: Sequence[Row], limit: int | None) -> dict[str, int | None]:
    """Answers longer than the limit: a service with one limit for all can't hold it exactly."""
    known = [row["answer_tokens"] for row in rows if row["answer_tokens"] is not None]
    over = sum(tokens > limit for tokens in known) if limit else 0
    return {"limit": limit, "n": over, "unknown": len(rows) - len(known)}


def max_tokens(run: Run, task: prompts.Task) -> int | None:
    """The limit that a run set to an answer: the task's, unless run.json says another."""
    limits = run.manifest["protocol"].get("max_tokens")
    known = isinstance(limits, dict) and task.name in limits
    return cast("dict[str, int | None]", limits)[task.name] if known else task.max_gen_toks


def signature(run: Run, task: prompts.Task) -> str:
    """Everything that decides a figure, in one line, printed with it."""
    protocol = run.manifest["protocol"]
    parts = {
        "task": f"{task.name}@{protocol['task_versions'][task.name]}",
        "data": f"{protocol['dataset_version']}@{protocol['dataset_sha256'][:12]}",
        "prompt": protocol["prompt_templates_sha256"][task.name][:12],
        "shots": str(protocol.get("num_fewshot", 0)),
        "chat_template": "yes" if protocol.get("chat_template_used") else "no",
        "system": str(protocol.get("system_instruction_sha") or "none")[:12],
        "max_tokens": str(max_tokens(run, task) or "none"),
        "regime": protocol["regime"],
        **({"samples": str(samples)} if (samples := protocol.get("samples", 1)) > 1 else {}),
        "parser": answers.PARSER_VERSION,
        "hk_fs_bench": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())
