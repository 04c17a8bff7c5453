"""What a local run asks: whose share of which prompts, and which of them are answered already."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hk_fs_bench import __version__, items, lm_eval_runs, model_args, prompts, run_parts, runs
from hk_fs_bench.errors import UserError
from hk_fs_bench.lm_eval_model import RecordedModel, limit_of, regime_of, thinking_mode
from hk_fs_bench.local_configs import Config

SECONDS = (
    "measured: wall time of the batch in which an answer was generated, shared out equally over "
    "that batch's answers; loading is not in it, and processes side by side are added up"
)
# lm-eval has Ray load vLLM's copies in each call that generates.
WITH_LOADING = SECONDS.replace("loading is not in it", "loading the copies is in it")


@dataclass(frozen=True)
class Share:
    """The part of a run that one process answers: prompts whose number leaves `index`."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise UserError(f"no part {self.index + 1} of {self.count}; parts are 1/N to N/N")

    def split(self, index: int, count: int) -> Share:
        """This share dealt out once more, over `count` processes."""
        return Share(self.index * count + index, self.count * count)


@dataclass
class Job:
    """One process's part of a run. `todo` holds what is neither answered here nor elsewhere."""

    config: Config
    dataset: items.Dataset
    tasks: list[prompts.Task]
    folder: Path
    share: Share
    manifest: dict[str, Any]
    model_id: str | None = None
    todo: list[runs.Key] = field(default_factory=list)
    done: int = 0

    @property
    def part(self) -> Path:
        return self.folder / "parts" / run_parts.part_name(self.share.index, self.share.count)


def plan(
    config: Config,
    dataset: items.Dataset,
    *,
    tasks: Sequence[str],
    out: Path,
    share: Share | None = None,
    limit: int | None = None,
    model_id: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Job:
    """A process's part of a run, with what its folder holds already.

    Nothing is written, but for the run folder that lm-eval's output among the parts is made.

    Args:
        limit: prompts a task, at most.
        model_id: org/name of a model that is a local folder.
        metadata: hk_fs_dataset and hk_fs_revision, where the edition is not the packaged one.

    Raises:
        UserError: an unknown task, or a folder that holds answers of another model or of this one
            asked otherwise.
    """
    share = share or Share()
    chosen = [prompts.load_task(task) for task in prompts.expand(tasks)]
    told = {**(config.lm_eval.get("metadata") or {}), **(metadata or {})}
    config = replace(config, lm_eval=config.lm_eval | {"metadata": told})
    keys = [
        (task.name, doc["id"], doc["variant"], 0)
        for task in chosen
        for doc in items.docs(dataset, **task.data_options)[:limit]
    ]
    if not keys:
        raise UserError(f"there is nothing to ask: {dataset.source} has no question of these tasks")
    manifest = _manifest(config, dataset, chosen, limit, model_id)
    manifest["planned_whole"] = {t.name: sum(k[0] == t.name for k in keys) for t in chosen}
    folder = folder_of(config, out, model_id)
    job = Job(config, dataset, chosen, folder, share, manifest, model_id)
    held = _held(job)
    own = held.pop(job.part, set())
    elsewhere = set().union(*held.values())
    mine = [key for key in keys[share.index :: share.count] if key not in elsewhere]
    job.todo = [key for key in mine if key not in own]
    job.done = len(own)
    # Others may have answered what an earlier command of this part was to.
    planned = [key[0] for key in {*own, *mine}]
    named = dict.fromkeys([*manifest["planned_whole"], *sorted(planned)])
    manifest["planned"] = {task: planned.count(task) for task in named}
    if own:
        _inherit(manifest, runs.read_run(job.part).manifest)
    return job


def _inherit(new: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keep what a part's earlier sessions did: other tasks, or more prompts of these."""
    new["tasks"] = list(dict.fromkeys([*old["tasks"], *new["tasks"]]))
    for name in run_parts.BY_TASK:
        new["protocol"][name] = {**(old["protocol"].get(name) or {}), **new["protocol"][name]}
    if not run_parts.generates(new):
        for name in (*run_parts.OF_GENERATING, "regime_label"):
            new["protocol"][name] = old["protocol"].get(name)
    before, now = old.get("planned_whole") or {}, new["planned_whole"]
    tasks = dict.fromkeys([*before, *now])
    new["planned_whole"] = {task: max(before.get(task, 0), now.get(task, 0)) for task in tasks}
    limits = (old["protocol"].get("limit"), new["protocol"]["limit"])
    new["protocol"]["limit"] = None if None in limits else max(limits)
    new["sessions"] = list(old.get("sessions") or [])
    new["started_at"] = old.get("started_at")


def folder_of(config: Config, out: Path, model_id: str | None = None) -> Path:
    """The folder of a config's run, below `out`."""
    name = model_id or config.name
    if Path(name).is_dir():
        name = Path(name).resolve().name
    name = re.sub(r"[^\w.-]+", "-", name)[-80:].strip("-.")
    return out / f"{name}-{config.regime}"


def _held(job: Job) -> dict[Path, set[runs.Key]]:
    """The answered keys of every part of the folder."""
    if (job.folder / "run.json").is_file() and not run_parts.folders(job.folder):
        raise UserError(
            f"{job.folder} holds a run that is none of this command's; name another --out, or move "
            "that folder away"
        )
    for log in sorted(job.folder.glob("parts/*/predictions.jsonl")):
        if log.stat().st_size and not (log.parent / "run.json").is_file():
            raise UserError(f"{log.parent} has predictions and no run.json; move it away")
    if lm_eval_runs.is_lm_eval_output(job.part):
        raise UserError(f"{job.part} holds an output of lm_eval; give it another name in parts/")
    found = {}
    for part in run_parts.folders(job.folder):
        run = run_parts.read(part, job.dataset, job.model_id)
        if run.rows:
            run_parts.check_same(part, run.manifest, job.manifest, "this command")
        found[part] = {key for key, row in run.rows.items() if runs.settled(row)}
    return found


def settings_of(config: Config, task: prompts.Task) -> dict[str, Any]:
    """lm-eval's generation settings of a task, with the config's own over them."""
    base: dict[str, Any] = {"until": [], "max_gen_toks": task.max_gen_toks, "do_sample": False}
    return base | (config.lm_eval.get("gen_kwargs") or {})


def _manifest(
    config: Config,
    dataset: items.Dataset,
    tasks: Sequence[prompts.Task],
    limit: int | None,
    model_id: str | None,
) -> dict[str, Any]:
    model = RecordedModel(config.lm_eval, None)
    name = model_id or (f"local/{model.folder.resolve().name}" if model.folder else model.name)
    generative = [task for task in tasks if task.output_type == "generate_until"]
    sent = [settings_of(config, task) for task in generative]
    template = getattr(model.tokenizer, "chat_template", None)
    used = bool(config.lm_eval.get("apply_chat_template"))
    if used and model.tokenizer is not None and not template:
        raise UserError(
            f"{name} has no chat template; set apply_chat_template: false in a YAML file of it"
        )
    return {
        "format": runs.FORMAT_VERSION,
        "complete": False,
        "stopped": None,
        "tasks": [task.name for task in tasks],
        "planned": {},
        "planned_whole": {},
        "model": {
            "id": name,
            "requested_id": name,
            "returned_ids": [],
            "revision": model.revision,
            "weights_sha256": model.weights_sha256,
            "provider": config.lm_eval["model"],
            "deployment": "local",
            "mode": thinking_mode(model.args.get("enable_thinking")),
            "model_args": model_args.recorded(model.args),
            "search": "off",
        },
        "protocol": {
            "task_versions": {task.name: task.version for task in tasks},
            "prompt_templates_sha256": {task.name: prompts.template_sha256(task) for task in tasks},
            "dataset_version": dataset.version or "unversioned",
            "dataset_sha256": dataset.sha256,
            "chat_template_used": used,
            "model_has_chat_template": None if model.tokenizer is None else bool(template),
            "chat_template_sha256": (
                prompts.prompt_sha256(template) if used and isinstance(template, str) else None
            ),
            "num_fewshot": 0,
            "regime": regime_of(sent, config.regime, model),
            "regime_label": config.regime,
            "max_tokens": {task.name: limit_of(settings_of(config, task)) for task in tasks},
            "system_instruction_sha": None,
            "generation_kwargs": sent[0] if sent else None,
            "limit": limit,
        },
        "timing": {
            "seconds_definition": (
                SECONDS if model.args.get("data_parallel_size") in (None, 1) else WITH_LOADING
            )
        },
        "software": {
            "hk_fs_bench": __version__,
            "python": platform.python_version(),
            **{p: _version(p) for p in ("lm_eval", "torch", "transformers", "vllm")},
            "backend": config.lm_eval["model"],
            "dtype": str(model.args.get("dtype", "auto")),
            "scale": config.scale.name,
            "device": config.lm_eval.get("device"),
        },
        "sessions": [],
        "started_at": None,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
