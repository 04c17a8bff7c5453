"""run.json of a hosted model's run: who was asked, how, and whether a folder is that same run."""

from __future__ import annotations

import datetime
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hk_fs_bench import __version__, prompts
from hk_fs_bench.api_models import Model, Price, Provider
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.runs import FORMAT_VERSION

# Fields that decide what an answer is an answer to: two runs that differ in one never share a
# folder.
IDENTITY = (
    ("model", "requested_id"),
    ("model", "id"),
    ("model", "provider"),
    ("model", "mode"),
    ("model", "search"),
    ("protocol", "dataset_sha256"),
    ("protocol", "regime"),
    ("protocol", "parameters_sent"),
)
BY_TASK = ("task_versions", "prompt_templates_sha256")
INHERITED = (*BY_TASK, "parameters_not_applied")


def shown_id(service_id: str) -> str:
    """An id for tables and files: a server of one's own may know its model by a path."""
    if re.match(r"[/~.\\]|[A-Za-z]:[/\\]", service_id):
        return f"local/{Path(service_id.replace(chr(92), '/')).name}"
    return service_id


def folder_name(shown: str) -> str:
    """A folder's name for a model's, maybe empty. File systems count bytes."""
    short = re.sub(r"[^\w.-]+", "-", shown).encode()[:120].decode("utf-8", "ignore")
    return short.strip("-.")


def manifest_of(
    name: str,
    model: Model,
    provider: Provider,
    base_url: str,
    dataset: Dataset,
    tasks: Sequence[prompts.Task],
    *,
    regime: str,
    parameters_sent: Mapping[str, Any],
    parameters_not_applied: Mapping[str, str],
    planned: Mapping[str, int],
    samples: int,
    limit: int | None,
    price: Price | None,
) -> dict[str, Any]:
    """The manifest of a run that has not begun."""
    sent = dict(parameters_sent)
    return {
        "format": FORMAT_VERSION,
        "complete": False,
        "stopped": None,
        "tasks": [task.name for task in tasks],
        "planned": dict(planned),
        "model": {
            "id": model.model,
            "configuration": name,
            "requested_id": shown_id(model.id or ""),
            "returned_ids": [],
            "revision": None,
            "weights_sha256": None,
            "provider": model.provider,
            "endpoint": base_url.rstrip("/"),
            "deployment": provider.deployment,
            "mode": model.thinking.mode,
            "search": model.search.label,
        },
        "protocol": {
            "task_versions": {task.name: task.version for task in tasks},
            "prompt_templates_sha256": {task.name: prompts.template_sha256(task) for task in tasks},
            "dataset_version": dataset.version or "unversioned",
            "dataset_sha256": dataset.sha256,
            "chat_template_used": True,
            "model_has_chat_template": None,
            "chat_template_sha256": None,
            "num_fewshot": 0,
            "regime": regime,
            "samples": samples,
            "generation_kwargs": sent,
            "parameters_sent": sent,
            "parameters_not_applied": dict(parameters_not_applied),
            "answer_limit": max((task.max_gen_toks or 0 for task in tasks), default=0) or None,
            "limit_includes_thinking": model.limit.includes_thinking,
            "thinking_budget": model.thinking.budget,
            "limit": limit,
        },
        "price": None if price is None else price.model_dump(mode="json"),
        "software": {
            "hk_fs_bench": __version__,
            "openai": version("openai"),
            "python": platform.python_version(),
        },
        "sessions": [],
        "started_at": None,
    }


def refuse_another_run(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """UserError if the answers in a folder answer something else than what is asked now."""
    if not _sound(old):
        raise UserError(
            f"{folder / 'run.json'} is no manifest of a hosted run; put it back as it was, or move "
            "the folder away"
        )
    hosted = new["model"]["deployment"] == "api"
    # A server of one's own may listen elsewhere tomorrow.
    for part, name in (*IDENTITY, *([("model", "endpoint")] if hosted else [])):
        before = (old.get(part) or {}).get(name)
        if before != new[part][name]:
            _refuse(folder, name, before, new[part][name])
    for name in BY_TASK:
        known = (old.get("protocol") or {}).get(name) or {}
        for task, value in new["protocol"][name].items():
            if task in known and known[task] != value:
                _refuse(folder, f"{name} of {task}", known[task], value)


def _sound(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest has the parts that `inherit` goes on with, each of its type."""
    parts: list[tuple[Any, type | tuple[type, ...]]] = [
        *((manifest.get(name), dict) for name in ("model", "protocol")),
        (manifest.get("planned") or {}, dict),
        (manifest.get("tasks"), list),
        (manifest.get("sessions") or [], list),
    ]
    if not all(isinstance(value, kind) for value, kind in parts):
        return False
    try:
        Price.model_validate(manifest.get("price") or {"input": 0, "output": 0})
    except ValueError:
        return False
    protocol = manifest["protocol"]
    counts = [protocol.get("samples"), protocol.get("limit")]
    counts += (manifest.get("planned") or {}).values()
    return (
        all(n is None or (isinstance(n, int) and n >= 0) for n in counts)
        and all(isinstance(protocol.get(name) or {}, dict) for name in INHERITED)
        and all(isinstance(session, dict) for session in manifest.get("sessions") or [])
    )


def lost_usd(manifest: Mapping[str, Any]) -> float:
    """What the replies of earlier sessions may have cost that were lost on the way."""
    lost = (session.get("lost_usd_most") for session in manifest["sessions"])
    return float(sum(usd for usd in lost if isinstance(usd, int | float)))


def usage_of(folder: Path, row: Mapping[str, Any]) -> Mapping[str, int | None]:
    """A row's token counts; UserError for what is none."""
    usage = row.get("token_usage") or {}
    if not isinstance(usage, dict) or not all(
        n is None or (isinstance(n, int) and n >= 0) for n in usage.values()
    ):
        raise UserError(
            f"{folder / 'predictions.jsonl'}: the row of {row['item_id']} has a token_usage that "
            "is none; put the row back as it was, or move the folder away"
        )
    return usage


def _refuse(folder: Path, what: str, before: Any, now: Any) -> None:
    def short(value: Any) -> str:
        text = str(value)
        return text if len(text) <= 60 else text[:60] + "…"

    raise UserError(
        f"{folder} holds answers with {what} {short(before)}, and this command asks with "
        f"{short(now)}; name another --out, or move that folder away"
    )


def inherit(new: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keep what the folder's earlier sessions found out and did."""
    new["tasks"] = list(dict.fromkeys([*old["tasks"], *new["tasks"]]))
    new["model"]["returned_ids"] = list(old["model"].get("returned_ids") or [])
    for name in INHERITED:
        new["protocol"][name] = {**(old["protocol"].get(name) or {}), **new["protocol"][name]}
    new["planned"], new["protocol"]["samples"] = _both_plans(old, new)
    limits = (old["protocol"].get("limit"), new["protocol"]["limit"])
    new["protocol"]["limit"] = None if None in limits else max(limits)
    new["price"] = new["price"] or old.get("price")
    new["sessions"] = list(old.get("sessions") or [])
    new["started_at"] = old.get("started_at")


def _both_plans(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, int], int]:
    """(answers planned a task, samples) of the smallest plan that holds both: more questions in
    one and more samples in the other make more of each."""
    samples = [max(1, plan["protocol"].get("samples") or 1) for plan in (old, new)]
    prompts = [
        {task: n // k for task, n in (plan.get("planned") or {}).items()}
        for plan, k in zip((old, new), samples, strict=True)
    ]
    most = max(samples)
    tasks = {**prompts[0], **prompts[1]}
    return {task: max(p.get(task, 0) for p in prompts) * most for task in tasks}, most


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
