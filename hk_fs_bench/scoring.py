"""Runs → parsed and scored rows (items.jsonl) and figures (scores.json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hk_fs_bench import prompts, run_manifest
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.metrics import breakdowns, mcq
from hk_fs_bench.open_metrics import OpenScores, System, Wanted, score_open
from hk_fs_bench.runs import Run, check_writable, write_json, write_jsonl
from hk_fs_bench.schema import Item, MCQItem, OEQItem
from hk_fs_bench.scored_rows import rows_of
from hk_fs_bench.task_figures import figures_of, max_tokens

SCORES_FORMAT = 2
CONTEXT_TASKS = ("hk_fs_mcq_hk", "hk_fs_mcq_nohk")


@dataclass
class ScoredRun:
    """A run with its parsed rows by task, the items that they answer, its open tasks' metrics, and
    scores.json's content."""

    run: Run
    rows: dict[str, list[dict[str, Any]]]
    items: Mapping[str, Item] = field(default_factory=dict)
    open: dict[str, OpenScores] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)

    def answered(self, task: str) -> list[dict[str, Any]]:
        """The rows of a task that are answers."""
        return [row for row in self.rows.get(task, []) if row["status"] != "infra_error"]


def score(run: Run, dataset: Dataset, wanted: Wanted | None = None) -> dict[str, Any]:
    """Score one run as `score_runs` does; returns the content of its scores.json."""
    return score_runs([run], dataset, wanted)[0].scores


def score_runs(
    runs: Sequence[Run], dataset: Dataset, wanted: Wanted | None = None
) -> list[ScoredRun]:
    """Score every task of every run, write items.jsonl and scores.json into the folders.

    Nothing is written unless all runs can be scored.

    Args:
        wanted: the metrics of open answers; without it those that need no other program.

    Raises:
        UserError: a run was asked on another edition than `dataset`, has an item that is unknown,
            is broken, or lies where nothing can be written.
    """
    for run in runs:
        check_writable(run.folder)
    scored = evaluate(runs, dataset, wanted)
    for one in scored:
        write_jsonl(one.run.folder / "items.jsonl", [r for rows in one.rows.values() for r in rows])
        write_json(one.run.folder / "scores.json", one.scores)
    return scored


def evaluate(
    runs: Sequence[Run], dataset: Dataset, wanted: Wanted | None = None
) -> list[ScoredRun]:
    """What `score_runs` does, without a file written; the runs need no folder."""
    for run in runs:
        run_manifest.check(run)
    _check_edition(runs, dataset)
    scored = [
        ScoredRun(
            run, {n: rows_of(run, dataset, prompts.load_task(n)) for n in run.tasks}, dataset.by_id
        )
        for run in runs
    ]
    open_tasks = [(one, task) for one in scored for task in one.rows if _is_open(task)]
    systems = [System(one.run.folder, one.answered(task)) for one, task in open_tasks]
    items = cast("Mapping[str, OEQItem]", dataset.by_id)
    metrics = score_open(systems, items, wanted or Wanted())
    for (one, task), found in zip(open_tasks, metrics, strict=True):
        one.open[task] = found
        for row, values in zip(found.rows, found.of_rows(), strict=True):
            cast("dict[str, Any]", row)["metrics"] = values
    for one in scored:
        one.scores = _scores(one, dataset)
    return scored


def _is_open(task: str) -> bool:
    return prompts.load_task(task).subset == "oeq"


def _check_edition(runs: Sequence[Run], dataset: Dataset) -> None:
    """UserError unless all runs were asked on `dataset`."""
    editions = {run.manifest["protocol"]["dataset_sha256"] for run in runs}
    for run in runs:
        protocol = run.manifest["protocol"]
        asked = protocol["dataset_sha256"]
        if asked != dataset.sha256:
            mend = "name the run's own with --dataset and --revision"
            if len(editions) > 1:
                mend += "; runs of several editions can't be compared, score them apart"
            raise UserError(
                f"{run.folder} was asked on dataset {protocol['dataset_version']} "
                f"({asked[:12]}), and {dataset.source} is {dataset.version or 'unversioned'} "
                f"({dataset.sha256[:12]}); {mend}"
            )


def _scores(one: ScoredRun, dataset: Dataset) -> dict[str, Any]:
    run = one.run
    tasks = {
        name: figures_of(run, prompts.load_task(name), rows, dataset, one.open.get(name))
        for name, rows in one.rows.items()
    }
    return {
        "format": SCORES_FORMAT,
        "complete": missing(run, tasks) == 0,
        "model": run.manifest["model"],
        "protocol": run.manifest["protocol"],
        "warnings": warnings(run, tasks),
        "tasks": tasks,
        "context": _context(one, dataset),
    }


def _context(one: ScoredRun, dataset: Dataset) -> dict[str, Any] | None:
    """Accuracy with Hong Kong context less that without, on the questions asked both ways."""
    hk, nohk = (one.answered(task) for task in CONTEXT_TASKS)
    if not hk or not nohk:
        return None
    items = cast("Mapping[str, MCQItem]", dataset.by_id)
    return {
        "tasks": list(CONTEXT_TASKS),
        "difference": mcq.difference(hk, nohk).to_json(),
        "by_jurisdiction_cue": breakdowns.by_field(
            hk, items, "jurisdiction_cue", lambda rows: mcq.difference(rows, nohk)
        ),
    }


def missing(run: Run, tasks: Mapping[str, Any]) -> int:
    """How many of the answers that a run planned are not there, whatever run.json says of it."""
    planned: int = sum((run.manifest.get("planned") or {}).values())
    answered: int = sum(figures["answered"] for figures in tasks.values())
    return max(0, planned - answered)


def warnings(run: Run, tasks: Mapping[str, Any]) -> list[str]:
    """What a reader must know before any figure, gravest first."""
    found = []
    protocol, model = run.manifest["protocol"], run.manifest["model"]
    if lacking := missing(run, tasks):
        planned = sum(run.manifest["planned"].values())
        found.append(
            f"INCOMPLETE RUN: {planned - lacking} of {planned} answers are there, and every figure "
            "is over these; the runner's command again asks the rest"
        )
    if protocol.get("model_has_chat_template") and not protocol.get("chat_template_used"):
        found.append(
            "this model has a chat template and ran without it, so it was asked wrongly; run it "
            "again with --apply_chat_template"
        )
    if protocol["regime"] == "custom":
        label = protocol.get("regime_label")
        found.append(
            "regime custom: the settings that were sent are neither greedy nor the paper's for "
            f"this model{f', though labelled {label}' if label else ''}"
        )
    for task in map(prompts.load_task, tasks):
        if (limit := max_tokens(run, task)) != task.max_gen_toks:
            found.append(
                f"{task.name}: the limit was {limit} tokens, not the task's {task.max_gen_toks}"
            )
    if "lm_eval" in (run.manifest.get("software") or {}):
        unknown = [
            name
            for name, figures in tasks.items()
            if figures["readable"]
            and figures["over_limit"]["limit"]
            and not figures["tokens"]["output"]["n"]
        ]
        if unknown:
            found.append(
                f"{', '.join(unknown)}: the answers' tokens are not known, for want of the model's "
                "tokenizer, so none that the limit cut is known as cut; name it with --tokenizer"
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
    if strays := sum(key[0] not in tasks for key in run.rows):
        found.append(f"{strays} rows belong to tasks that run.json does not name; left out")
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
