"""leaderboard.json → Every Eval Ever, schema 0.3.0: one JSON file an entry.

Its validator runs on Python 3.12 and later, beside another version of huggingface-hub than ours,
so it is used by hand: `every_eval_ever validate 'data/*/*/*/*.json'` in the exported folder.
"""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hk_fs_bench.sources import HUB_DATASET

SCHEMA = "0.3.0"
BENCHMARK = "hk_fs_bench"
# How a metric is read: display name, kind, and whether less is better.
_METRICS = {
    "accuracy": ("Accuracy", "accuracy", False),
    "accuracy_on_valid": ("Accuracy over readable answers", "accuracy", False),
    "non_conservative": ("Unsafe errors", "error_rate", True),
    "invalid_rate": ("Unreadable answers", "error_rate", True),
    "bleu4": ("BLEU-4", "bleu", False),
    "meteor": ("METEOR", "meteor", False),
    "rouge_l": ("ROUGE-L", "rouge", False),
    "bertscore_f1": ("BERTScore F1", "bertscore", False),
    "cites": ("Answers that cite", "rate", False),
    "citations_exist": ("Citations that exist", "rate", False),
    "citations_hit": ("Citations of the item's own provisions", "rate", False),
}
_FIGURES = ("accuracy", "accuracy_on_valid", "non_conservative", "invalid_rate")
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def files(board: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """(path below the export's folder, content) of every entry."""
    for entry in board["entries"]:
        log = log_of(entry, board)
        if log["evaluation_results"]:
            yield path_of(entry), json.dumps(log, ensure_ascii=False, indent=1) + "\n"


def path_of(entry: Mapping[str, Any]) -> Path:
    """data/<benchmark>/<developer>/<model>/<uuid4>.json; the uuid is made of the slug."""
    developer, _, model = entry["model"]["id"].rpartition("/")
    name = uuid.UUID(bytes=uuid.uuid5(uuid.NAMESPACE_URL, entry["slug"]).bytes, version=4)
    return Path("data", BENCHMARK, _part(developer or "unknown"), _part(model), f"{name}.json")


def _part(name: str) -> str:
    """A name as one part of a path."""
    return _UNSAFE_IN_NAMES.sub("_", name).strip(".") or "unknown"


def log_of(entry: Mapping[str, Any], board: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as an evaluation log."""
    model, protocol = entry["model"], entry["protocol"]
    stamp = datetime.datetime.fromisoformat(entry["date"]).replace(tzinfo=datetime.UTC)
    local = model.get("deployment") == "local"
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{BENCHMARK}/{model['id']}/{entry['slug']}",
        "retrieved_timestamp": str(int(stamp.timestamp())),
        "source_metadata": {
            "source_name": "hk-fs-bench leaderboard",
            "source_type": "evaluation_run",
            "source_organization_name": "hk-fs-bench",
            "evaluator_relationship": "other",
            "additional_details": {
                "submitter": entry["submitter"]["login"],
                "entry": entry["slug"],
                "label": entry["label"],
                "kind": entry["kind"],
                "ranked": str(entry["ranked"]).lower(),
                "flags": "; ".join(f"{f['kind']}: {f['text']}" for f in entry["flags"]) or "none",
            },
        },
        "eval_library": {"name": "hk-fs-bench", "version": board["software"]["hk_fs_bench"]},
        "model_info": {
            "name": entry["name"],
            "id": model["id"],
            "developer": model["id"].split("/")[0],
            "inference_platform": model["provider"],
            "additional_details": {
                "deployment_type": "self_deployed" if local else "externally_managed",
                "model_availability": "open_weights" if local else "unknown",
                "revision": model.get("revision") or model.get("weights_sha256") or "unknown",
                "mode": model["mode"],
                "search": model["search"],
            },
        },
        "evaluation_results": [
            _result(task, name, figure, own, protocol, board, model)
            for task, own in entry["tasks"].items()
            for name, figure in _figures(own)
        ],
    }


def _figures(task: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = {name: task[name] for name in _FIGURES if name in task}
    for name, figure in (found | (task.get("metrics") or {})).items():
        if figure["value"] is not None and name.split(":")[0] in _METRICS:
            yield name, figure


def _result(
    task: str,
    name: str,
    figure: Mapping[str, Any],
    own: Mapping[str, Any],
    protocol: Mapping[str, Any],
    board: Mapping[str, Any],
    model: Mapping[str, Any],
) -> dict[str, Any]:
    shown, kind, lower = _METRICS[name.split(":")[0]]
    subset = "oeq" if "metrics" in own else "mcq"
    score: dict[str, Any] = {
        "score": figure["value"],
        "details": {"label": figure["label"], "n": str(figure["n"]), "unit": figure["unit"]},
    }
    if figure["ci95"] is not None:
        low, high = figure["ci95"]
        interval = {"lower": low, "upper": high, "confidence_level": 0.95}
        method = {"method": figure["interval"]} if "interval" in figure else {}
        score["uncertainty"] = {
            "confidence_interval": interval | method,
            "num_samples": figure["n"],
        }
    limit = own["over_limit"]["limit"]
    settings = protocol.get("generation_kwargs") or {}
    generation: dict[str, Any] = {"max_tokens": limit} if limit else {}
    for setting in ("temperature", "top_p", "top_k"):
        if isinstance(settings.get(setting), int | float):
            generation[setting] = settings[setting]
    if model["mode"] in ("on", "off"):
        generation["reasoning"] = model["mode"] == "on"
    return {
        "evaluation_result_id": f"{task}/{name}",
        "evaluation_name": task,
        "source_data": {
            "dataset_name": f"hk-fs-code {subset}",
            "source_type": "hf_dataset",
            "hf_repo": HUB_DATASET,
            "hf_split": "test",
            "samples_number": own["items"],
            "additional_details": {"version": board["dataset"]["version"]},
        },
        "metric_config": {
            "metric_id": f"{BENCHMARK}.{name}",
            "metric_name": shown,
            "metric_kind": kind,
            "metric_unit": "proportion",
            "lower_is_better": lower,
            "score_type": "continuous",
            "min_score": -1.0 if kind == "bertscore" else 0.0,
            "max_score": 1.0,
            "additional_details": {"signature": figure.get("signature") or own["signature"]},
        },
        "score_details": score,
        "generation_config": {
            "generation_args": generation,
            "additional_details": {
                "signature": own["signature"],
                "regime": protocol["regime"],
            },
        },
    }
