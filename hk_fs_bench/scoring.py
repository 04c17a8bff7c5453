"""A run → parsed and scored rows (items.jsonl) and figures (scores.json)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hk_fs_bench import __version__, answers, prompts
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import LETTERS, Dataset, unrotate
from hk_fs_bench.metrics import mcq
from hk_fs_bench.runs import Run, write_json, write_jsonl
from hk_fs_bench.schema import MCQItem

SCORES_FORMAT = 1


def score(run: Run, dataset: Dataset) -> dict[str, Any]:
    """Score every task of a run, write items.jsonl and scores.json into its folder.

    Raises:
        UserError: the run was asked on another edition than `dataset`, or an item of it is
            unknown.
    """
    asked = run.manifest["protocol"]["dataset_sha256"]
    if asked != dataset.sha256:
        raise UserError(
            f"{run.folder} was asked on dataset {run.manifest['protocol']['dataset_version']} "
            f"({asked[:12]}), and {dataset.source} is {dataset.version} ({dataset.sha256[:12]}); "
            "name the run's own with --dataset and --revision"
        )
    from_lm_eval = "lm_eval" in (run.manifest.get("software") or {})
    rows: list[dict[str, Any]] = []
    tasks: dict[str, Any] = {}
    for name in run.tasks:
        task = prompts.load_task(name)
        parsed = [_parse(row, dataset, task, from_lm_eval) for row in run.of_task(name)]
        tasks[name] = _figures(run, task, parsed, len(dataset.items(task.subset)) * task.rotations)
        rows += parsed
    scores = {
        "format": SCORES_FORMAT,
        "complete": run.manifest.get("complete", True),
        "model": run.manifest["model"],
        "protocol": run.manifest["protocol"],
        "warnings": warnings(run, tasks),
        "tasks": tasks,
    }
    write_jsonl(run.folder / "items.jsonl", rows)
    write_json(run.folder / "scores.json", scores)
    return scores


def warnings(run: Run, tasks: Mapping[str, Any]) -> list[str]:
    """What a reader must know before any figure, gravest first."""
    found = []
    protocol, model = run.manifest["protocol"], run.manifest["model"]
    if not run.manifest.get("complete", True):
        planned = sum(run.manifest["planned"].values())
        answered = sum(figures["answered"] for figures in tasks.values())
        found.append(
            f"INCOMPLETE RUN: {answered} of {planned} answers are there, and every figure is over "
            "these; the runner's command again asks the rest"
        )
    if protocol.get("model_has_chat_template") and not protocol.get("chat_template_used"):
        found.append(
            "this model has a chat template and ran without it, so it was asked wrongly; run it "
            "again with --apply_chat_template"
        )
    if contaminated := sum(figures["contaminated"] for figures in tasks.values()):
        found.append(
            f"CONTAMINATED: {contaminated} answers were given after a look at this benchmark's "
            "own address"
        )
    if model.get("search") == "on":
        found.append(
            "search: this model looks things up, and questions and keys are public; its figures "
            "are not comparable with those of models that don't"
        )
    if "temperature" in (protocol.get("parameters_not_applied") or {}):
        why = protocol["parameters_not_applied"]["temperature"]
        found.append(f"not greedy: the temperature was not applied ({why}), so this model sampled")
    if len(returned := model.get("returned_ids") or []) > 1:
        found.append(f"several models answered under one id: {', '.join(returned)}")
    for name, figures in tasks.items():
        if figures["answered"] and not figures["readable"]:
            found.append(f"{name}: not one of {figures['answered']} answers could be read")
        if figures["answered"] < figures["asked"]:
            found.append(
                f"{name}: {figures['asked'] - figures['answered']} of {figures['asked']} prompts "
                "have no answer yet, only a failure of the infrastructure; every figure is over "
                "the answered ones"
            )
        if figures["prompts"] < figures["items"]:
            found.append(f"{name}: only {figures['prompts']} of {figures['items']} prompts asked")
    return found


def _parse(
    row: Mapping[str, Any], dataset: Dataset, task: prompts.Task, from_lm_eval: bool
) -> dict[str, Any]:
    item = dataset.by_id.get(row["item_id"])
    if item is None:
        raise UserError(f"the run has an answer to {row['item_id']}, which the dataset lacks")
    out = {k: row.get(k) for k in ("task", "item_id", "variant", "sample", "finish_reason")}
    out |= {"token_usage": row.get("token_usage") or {}, "performance": row.get("performance")}
    out |= {k: row.get(k) for k in ("answer_tokens", "sources_used", "contaminated")}
    if row["status"] == "infra_error":
        return out | {"status": "infra_error", "cause": row.get("cause")}
    if row["status"] == "no_answer":
        status = answers.status_of_cause(row["cause"])
        empty = {"value": None} if isinstance(item, MCQItem) else {"answer": None, "reason": None}
        parsed = {"status": status, "method": "cause", **empty}
        first = parsed
    elif row.get("option_logprobs"):
        logprobs = row["option_logprobs"]
        value = LETTERS[logprobs.index(max(logprobs))]
        parsed = first = {"value": value, "method": "loglikelihood", "status": "valid"}
    else:
        parsed = _parse_text(row, item, row.get("finish_reason"))
        first = _parse_text(row, item, None)
    out |= parsed
    # lm-eval's own filters can't know why an answer ended; what that changes is counted.
    out["changed_by_finish_reason"] = from_lm_eval and parsed != first
    if isinstance(item, MCQItem):
        out["value"] = unrotate(parsed["value"], row.get("variant", ""))
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


def _figures(
    run: Run, task: prompts.Task, rows: Sequence[dict[str, Any]], items: int
) -> dict[str, Any]:
    answered = [row for row in rows if row["status"] != "infra_error"]
    figures: dict[str, Any] = {
        "signature": signature(run, task),
        "items": items,
        "prompts": len({(row["item_id"], row["variant"]) for row in rows}),
        "asked": len(rows),
        "answered": len(answered),
        "readable": sum(row["status"] in mcq.READABLE for row in answered),
        "statuses": mcq.status_counts(answered),
        "changed_by_finish_reason": sum(row["changed_by_finish_reason"] for row in answered),
        "tokens": {
            "input": _mean(answered, _usage("input_tokens")),
            "output": _mean(answered, _usage("output_tokens")),
        },
        "seconds": _seconds(run, answered),
        "over_limit": _over_limit(answered, task.max_gen_toks),
        "contaminated": sum(bool(row["contaminated"]) for row in answered),
        "samples": len({row["sample"] for row in rows}),
    }
    if task.subset == "mcq":
        figures["accuracy"] = mcq.accuracy(answered)
        figures["accuracy_on_valid"] = mcq.accuracy_on_valid(answered)
        figures["accuracy_by_sample"] = mcq.by_sample(answered)
    if task.rotations > 1:
        figures["consistency"] = mcq.consistency(answered, task.rotations)
    if task.subset == "oeq":
        figures["answer_words"] = _mean(answered, lambda row: len((row["answer"] or "").split()))
    return figures


def _over_limit(rows: Sequence[Mapping[str, Any]], limit: int | None) -> dict[str, int | None]:
    """Answers longer than the limit: a service with one limit for all can't hold it exactly."""
    known = [row["answer_tokens"] for row in rows if row["answer_tokens"] is not None]
    over = sum(tokens > limit for tokens in known) if limit else 0
    return {"limit": limit, "n": over, "unknown": len(rows) - len(known)}


def signature(run: Run, task: prompts.Task) -> str:
    """Everything that decides a figure, in one line, printed with it."""
    protocol = run.manifest["protocol"]
    parts = {
        "task": f"{task.name}@{protocol['task_versions'][task.name]}",
        "data": f"{protocol['dataset_version']}@{protocol['dataset_sha256'][:12]}",
        "prompt": protocol["prompt_templates_sha256"][task.name][:12],
        "shots": str(protocol.get("num_fewshot", 0)),
        "chat_template": "yes" if protocol.get("chat_template_used") else "no",
        "regime": protocol["regime"],
        **({"samples": str(samples)} if (samples := protocol.get("samples", 1)) > 1 else {}),
        "parser": answers.PARSER_VERSION,
        "hk_fs_bench": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def _usage(field: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda row: row["token_usage"].get(field)


def _seconds(run: Run, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    timing = run.manifest.get("timing") or {}
    if "total_seconds" in timing:
        mean = timing["total_seconds"] / timing["requests"] if timing["requests"] else None
        return {"mean": mean, "n": timing["requests"], "definition": timing["seconds_definition"]}
    per_call = _mean(rows, lambda r: (r["performance"] or {}).get("latency_ms"))
    if per_call["mean"] is not None:
        per_call["mean"] /= 1000
    return per_call | {"definition": "latency of the answering call, without queue and back-off"}


def _mean(
    rows: Sequence[Mapping[str, Any]], value: Callable[[Mapping[str, Any]], float | None]
) -> dict[str, Any]:
    known = [v for v in map(value, rows) if v is not None]
    if not known:
        return {"mean": None, "n": 0, "reason": "not known for any answer"}
    return {"mean": sum(known) / len(known), "n": len(known)}
