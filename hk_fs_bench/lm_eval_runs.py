"""lm-eval's output folder → a run folder.

lm-eval keeps each answer's raw text but neither its length nor why it ended. Both are recovered
here with the model's own tokenizer, so that an answer cut off by the limit is known as such.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from hk_fs_bench import model_args, prompts
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset, docs, jsonl_rows
from hk_fs_bench.lm_eval_model import RecordedModel, limit_of, regime_of, thinking_mode
from hk_fs_bench.runs import FORMAT_VERSION, Run, key_of, write_json, write_jsonl

SECONDS = (
    "run-level: wall time of the whole lm-eval run, model loading included, over all its requests"
)


def is_lm_eval_output(folder: Path) -> bool:
    return folder.is_dir() and bool(_results_files(folder) or _sample_files(folder))


def convert(
    folder: Path,
    *,
    model_id: str | None = None,
    tokenizer: str | None = None,
    dataset: Dataset | None = None,
) -> Run:
    """Write `run.json` and `predictions.jsonl` beside lm-eval's files, and return the run.

    Args:
        folder: an --output_path of lm-eval, or the model's folder in it.
        model_id: org/name for a model that was a local folder; else "local/<folder name>".
        tokenizer: a folder or Hub id, where the run itself names none (API models).
        dataset: the edition that was asked; the samples' questions and keys are held against it.

    Raises:
        UserError: no samples, two runs in one folder, no task of ours, unreadable files, samples
            that say otherwise than the dataset, or a sample twice.
    """
    if model_id is not None and (
        not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", model_id) or ".." in model_id
    ):
        raise UserError(f"--model-id is org/name, a name and no path, not {model_id!r}")
    results_path = _the_one_results_file(folder)
    home = results_path.parent
    try:
        results = json.loads(results_path.read_text("utf-8"))
        stamp = results_path.stem.removeprefix("results_")
        known = [task for task in results["configs"] if task.startswith("hk_fs_")]
        model = RecordedModel(dict(results["config"]), tokenizer)
        dict(results["configs"]), dict(results["versions"])
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UserError(f"{results_path} is no result file of lm-eval 0.4") from None
    samples = {
        task: path
        for path in _sample_files(home)
        if (task := path.stem.removeprefix("samples_").removesuffix(f"_{stamp}")) in known
    }
    if not samples:
        raise UserError(
            f"{home} has no samples of an hk_fs task; run lm_eval with --log_samples and "
            "--output_path, both"
        )
    if lacking := [task for task in known if task not in samples]:
        raise UserError(f"{home} has no samples of {', '.join(lacking)}, which its results name")
    rows = []
    for task, path in samples.items():
        found = list(_rows(task, path, model, results["configs"][task].get("repeats")))
        if not found:
            raise UserError(f"{path} is empty: there is no sample of {task}")
        _check(found, path, prompts.load_task(task), dataset)
        rows += found
    manifest = _manifest(results, samples, rows, model, model_id)
    for row in rows:
        row.pop("_doc")
    write_jsonl(home / "predictions.jsonl", rows)
    write_json(home / "run.json", manifest)
    return Run(home, manifest, {key_of(row): row for row in rows})


def _check(
    rows: list[dict[str, Any]], path: Path, task: prompts.Task, dataset: Dataset | None
) -> None:
    """UserError for a sample that is there twice, or asks or keys otherwise than the dataset."""
    if len({key_of(row) for row in rows}) < len(rows):
        keys = [key_of(row) for row in rows]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UserError(f"{path} has {twice[1]} {twice[2]}".rstrip() + " twice; run it again")
    if dataset is None:
        return
    known = {(doc["id"], doc["variant"]): doc for doc in docs(dataset, **task.data_options)}
    for row in rows:
        doc, own = row["_doc"], known.get((row["item_id"], row["variant"]))
        # Another edition, or an item that the dataset lacks, is the scorer's to say.
        if own is None or doc["dataset_sha256"] != dataset.sha256:
            continue
        for name in ("question", "choices", "answer"):
            if doc.get(name) != own[name]:
                raise UserError(
                    f"{path}: the {name} of {row['item_id']} is not the dataset's; "
                    "the samples were changed, run the evaluation again"
                )


def _rows(
    task: str, path: Path, model: RecordedModel, repeats: int | None
) -> Iterator[dict[str, Any]]:
    # Under `accelerate launch` lm-eval evens out its processes by asking a last document again, and
    # logs that answer as one repeat more.
    ours = prompts.load_task(task)
    generates = ours.output_type != "multiple_choice"
    raw = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    for number, sample in jsonl_rows(raw, str(path)):
        try:
            doc, arguments, resps = sample["doc"], sample["arguments"], sample["resps"]
            asked = arguments["gen_args_0"]["arg_0"]
            prompt = prompts.render(ours, doc)
            row = {
                "task": task,
                "item_id": doc["id"],
                "variant": doc["variant"],
                # A chat template or shots stand round our prompt; without it, it was another one.
                "prompt_sha256": prompts.prompt_sha256(prompt if prompt in asked else asked),
                "attempt": 1,
                "status": "ok",
                "_doc": doc,
            }
            doc["dataset_version"], doc["dataset_sha256"]
            settings = dict(arguments["gen_args_0"]["arg_1"]) if generates else {}
            texts = _texts(resps)[:repeats] if generates else []
            logprobs = [] if generates else [float(resp[0][0]) for resp in resps]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, UndefinedError):
            raise UserError(f"{path} line {number} is no sample of {task}") from None
        input_tokens = model.count(asked)
        if not generates:
            yield row | {"sample": 0, "option_logprobs": logprobs, "token_usage": _usage(None)}
            continue
        limit = limit_of(settings)
        for sample_number, text in enumerate(texts):
            tokens = None if text is None else model.count(text)
            cut = tokens is not None and limit is not None and tokens >= int(limit)
            yield row | {
                "sample": sample_number,
                "output": text,
                "finish_reason": None if tokens is None else "length" if cut else "stop",
                "token_usage": _usage(input_tokens, tokens),
                "answer_tokens": tokens,
            }


def _texts(resps: Any) -> list[str | None]:
    """The texts of one sample, None where a service gave none; TypeError for another shape."""
    if not isinstance(resps, list) or not resps or not isinstance(resps[0], list) or not resps[0]:
        raise TypeError
    if not all(text is None or isinstance(text, str) for text in resps[0]):
        raise TypeError
    return resps[0]


def _usage(input_tokens: int | None, output_tokens: int | None = None) -> dict[str, int | None]:
    return {
        "input_tokens": input_tokens,
        "cached_input_tokens": None,
        "output_tokens": output_tokens,
        "reasoning_tokens": None,
    }


def _manifest(
    results: dict[str, Any],
    samples: dict[str, Path],
    rows: list[dict[str, Any]],
    model: RecordedModel,
    model_id: str | None,
) -> dict[str, Any]:
    editions = {(r["_doc"]["dataset_version"], r["_doc"]["dataset_sha256"]) for r in rows}
    if len(editions) != 1:
        raise UserError("the samples of this run come from several editions of the dataset")
    version, sha256 = editions.pop()
    configs = [results["configs"][task] for task in samples]
    sampling = [c["generation_kwargs"] for c in configs if c.get("generation_kwargs")]
    labels = {(c.get("metadata") or {}).get("hk_fs_regime") for c in configs} - {None}
    label = " and ".join(sorted(map(str, labels))) or None
    local = results["config"]["model"] in ("hf", "hf-auto", "huggingface", "vllm", "sglang")
    name = model_id or (f"local/{model.folder.name}" if model.folder else model.name)
    seconds = float(results["total_evaluation_time_seconds"])
    requests = sum(4 if "option_logprobs" in row else 1 for row in rows)
    has_template = getattr(model.tokenizer, "chat_template", None)
    return {
        "format": FORMAT_VERSION,
        "tasks": list(samples),
        "model": {
            "id": name,
            "requested_id": name,
            "returned_ids": [],
            "revision": results["config"].get("model_sha") or model.args.get("revision"),
            "weights_sha256": model.weights_sha256,
            "provider": results["config"]["model"],
            "deployment": "local" if local else "api",
            "mode": thinking_mode(model.args.get("enable_thinking")),
            "model_args": model_args.recorded(model.args) if local else None,
            "search": "off" if local else "unknown",
        },
        "protocol": {
            "task_versions": {task: str(results["versions"][task]) for task in samples},
            "prompt_templates_sha256": {
                task: prompts.template_sha256(prompts.load_task(task)) for task in samples
            },
            "dataset_version": version,
            "dataset_sha256": sha256,
            "chat_template_used": results.get("chat_template") is not None,
            "model_has_chat_template": None if model.tokenizer is None else bool(has_template),
            "chat_template_sha256": results.get("chat_template_sha"),
            "num_fewshot": max(results.get("n-shot", {}).get(task, 0) for task in samples),
            "regime": regime_of(sampling, label, model),
            "regime_label": label,
            "max_tokens": {
                task: limit_of(config.get("generation_kwargs") or {})
                for task, config in zip(samples, configs, strict=True)
            },
            "system_instruction_sha": results.get("system_instruction_sha"),
            "generation_kwargs": sampling[0] if sampling else None,
            "limit": results["config"].get("limit"),
        },
        "timing": {
            "total_seconds": seconds,
            "requests": requests,
            "seconds_definition": SECONDS,
        },
        "software": {
            "lm_eval": results.get("lm_eval_version"),
            "transformers": results.get("transformers_version"),
            "backend": results["config"]["model"],
            "dtype": results["config"].get("model_dtype"),
            "batch_size": results["config"].get("batch_size"),
            "device": results["config"].get("device"),
        },
        "started_at": results.get("date"),
    }


def _results_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("results_*.json"), *folder.glob("*/results_*.json")])


def _sample_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("samples_*.jsonl"), *folder.glob("*/samples_*.jsonl")])


def _the_one_results_file(folder: Path) -> Path:
    found = _results_files(folder)
    if not found:
        raise UserError(f"{folder} has samples but no results_*.json; the run did not end")
    if len(found) > 1:
        names = " and ".join(str(path.relative_to(folder)) for path in found[:2])
        raise UserError(
            f"{folder} holds {len(found)} runs ({names}); move each into a folder of its own, or "
            "name the one to score by its own folder"
        )
    return found[0]
