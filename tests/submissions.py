"""Runs and submissions made on the spot, and scripts/leaderboard.py as a command."""

import gzip
import hashlib
import json
import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hk_fs_bench import items, manifest, open_metrics, prompts, runs, scoring
from hk_fs_bench.leaderboard import entries

from .api_command import ROOT, environment, in_process

TASKS = ("hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq")


def small_edition(folder: Path, mcq: int = 12, oeq: int = 5) -> Path:
    """The first items of our edition as a released edition of their own."""
    for split, n in (("mcq/test", mcq), ("oeq/test", oeq)):
        path = folder / "data" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        source = items.default_folder() / "data" / f"{split}.jsonl"
        lines = source.read_text("utf-8").splitlines(keepends=True)[:n]
        path.write_text("".join(lines), "utf-8")
    manifest.write_manifest(folder, "1.0.0", "CANARY", "any", released="2026-10-01")
    return folder


def answer(item: Any, right: bool, chance: random.Random) -> str:
    """A model's answer to an item."""
    if hasattr(item, "answer"):
        wrong = [letter for letter in "ABCD" if letter != item.answer]
        letter = item.answer if right else chance.choice(wrong)
        return json.dumps(
            {"answer": letter, "reason": f"clause {(item.references or ['B5.6'])[0]}"}
        )
    words = item.reference_answer.split()
    kept = [word for word in words if chance.random() < (0.8 if right else 0.3)]
    return json.dumps({"answer": " ".join(kept) or "none", "reason": "B11.6"})


def make_run(
    folder: Path,
    dataset: items.Dataset,
    *,
    model: Mapping[str, Any] | None = None,
    skill: float = 0.7,
    seed: int = 1,
    tasks: tuple[str, ...] = TASKS,
    price: Mapping[str, Any] | None = None,
    sent: str = "2026-11-02T10:00:00+00:00",
    **protocol: Any,
) -> Path:
    """A complete run of a hosted model that is right with probability `skill`, not yet scored."""
    chance = random.Random(seed)
    named = next(iter((model or {}).get("returned_ids", ["tiny-1"])), None)
    rows = []
    loaded = [prompts.load_task(task) for task in tasks]
    for task in loaded:
        for doc in items.docs(dataset, **task.data_options):
            output = answer(dataset.by_id[doc["id"]], chance.random() < skill, chance)
            rows.append(
                {
                    "task": task.name,
                    "item_id": doc["id"],
                    "variant": doc["variant"],
                    "sample": 0,
                    "attempt": 1,
                    "prompt_sha256": prompts.prompt_sha256(prompts.render(task, doc)),
                    "output": output,
                    "reasoning": None,
                    "finish_reason": "stop",
                    "status": "ok",
                    "cause": None,
                    "option_logprobs": None,
                    "token_usage": {
                        "input_tokens": 200 + chance.randrange(50),
                        "cached_input_tokens": 0,
                        "output_tokens": 20 + chance.randrange(50),
                        "reasoning_tokens": 0,
                    },
                    "answer_tokens": 20,
                    "performance": {"latency_ms": 400.0 + chance.randrange(200)},
                    "returned_model": named,
                    "sources_used": None,
                    "sources": [],
                    "contaminated": False,
                    "shown_ids": [],
                    "in_flight": 1,
                    "sent_at": sent,
                }
            )
    content = {
        "format": 1,
        "complete": True,
        "stopped": None,
        "tasks": list(tasks),
        "planned": {task.name: 1 for task in loaded},
        "model": {
            "id": "acme/tiny-1",
            "configuration": "tiny",
            "requested_id": "tiny-1",
            "returned_ids": ["tiny-1"],
            "revision": None,
            "weights_sha256": None,
            "provider": "acme",
            "endpoint": "https://api.acme.example/v1",
            "deployment": "api",
            "mode": "none",
            "search": "off",
            **(model or {}),
        },
        "protocol": {
            "task_versions": {task.name: task.version for task in loaded},
            "prompt_templates_sha256": {
                task.name: prompts.template_sha256(task) for task in loaded
            },
            "dataset_version": dataset.version,
            "dataset_sha256": dataset.sha256,
            "chat_template_used": True,
            "model_has_chat_template": None,
            "num_fewshot": 0,
            "regime": "paper",
            "samples": 1,
            "generation_kwargs": {},
            "parameters_sent": {},
            "parameters_not_applied": {},
            **protocol,
        },
        "price": {"input": 1.0, "output": 2.0, "date": "2026-11-01"} if price is None else price,
        "software": {"hk_fs_bench": "0.1.0", "python": "3.11.7"},
        "sessions": [{"started_at": "2026-11-02T10:00:00+00:00", "ended_at": None}],
        "started_at": "2026-11-02T10:00:00+00:00",
    }
    folder.mkdir(parents=True)
    runs.write_json(folder / "run.json", content)
    runs.write_jsonl(folder / "predictions.jsonl", rows)
    return folder


def score(folder: Path, dataset: items.Dataset) -> Path:
    wanted = open_metrics.wanted("bleu,rouge,citations")
    scoring.score(runs.read_run(folder), dataset, wanted)
    return folder


class Board:
    """A leaderboard folder of its own on a small edition, and the command on it."""

    def __init__(self, folder: Path, edition: Path) -> None:
        self.folder, self.edition = folder, edition
        self.root = folder / "leaderboard"
        (self.root / "submissions").mkdir(parents=True)
        self.dataset = items.load(edition)

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        cache = {"XDG_CACHE_HOME": str(self.folder / "cache")}
        where = ["--root", str(self.root)]
        if words[0] != "export":
            where += ["--dataset", str(self.edition)]
        args = [*map(str, words), *where]
        return in_process(args, self.folder, environment(**cache), "scripts/leaderboard.py")

    def submit(self, name: str = "run", *words: object, login: str = "alice", **how: Any) -> Path:
        """A run made, scored and submitted; its folder."""
        run = score(make_run(self.folder / "runs" / name, self.dataset, **how), self.dataset)
        done = self("submit", run, "--submitter", login, "--contamination", "none_known", *words)
        assert done.returncode == 0, done.stderr + done.stdout
        return Path(done.stdout.splitlines()[0].removeprefix("packed "))

    @property
    def content(self) -> dict[str, Any]:
        return json.loads((self.root / "leaderboard.json").read_text("utf-8"))


def repack(
    folder: Path,
    change: Callable[[dict[str, Any]], object] | None = None,
    rows: Callable[[list[dict[str, Any]]], object] | None = None,
    raw: bytes | None = None,
    packed: bytes | None = None,
) -> Path:
    """A submission changed as its own maker could have made it: hashes, key and slug fit."""
    content = json.loads((folder / entries.MANIFEST).read_text("utf-8"))
    if raw is None:
        raw = gzip.decompress((folder / entries.PREDICTIONS).read_bytes())
    if rows is not None:
        table = [json.loads(line) for line in raw.splitlines()]
        rows(table)
        raw = "".join(json.dumps(row) + "\n" for row in table).encode()
    content["predictions"] = {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "bytes": len(raw),
        "rows": raw.count(b"\n"),
    }
    if change is not None:
        change(content)
    try:
        content["key"] = entries.key_of(content["run"], entries.encoder_of(content["scores"]))
        content["slug"] = entries.slug_of(content)
    except (KeyError, TypeError, AttributeError):
        content["slug"] = folder.name
    target = folder.parent / str(content["slug"])
    target.mkdir(exist_ok=True)
    if target != folder:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    text = json.dumps(content, ensure_ascii=True, indent=2)
    (target / entries.MANIFEST).write_text(text, "utf-8")
    (target / entries.PREDICTIONS).write_bytes(entries.pack(raw) if packed is None else packed)
    return target


def git(folder: Path, *words: str) -> str:
    """git with a name of its own; what it printed."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


__all__ = ["ROOT", "TASKS", "Board", "git", "make_run", "repack", "score", "small_edition"]
