"""Local runs for tests: an engine whose answers a test chooses, and a small edition to ask."""

from __future__ import annotations

from pathlib import Path

from hk_fs_bench import items, local_configs, local_plan, local_runs
from hk_fs_bench.runs import read_run

TASKS = ["hk_fs_mcq_hk", "hk_fs_oeq"]


class Engine:
    """Stands for a model of lm-eval's. `room` is how many answers its memory holds at once."""

    tokenizer_name = "engine"

    def __init__(self, room=10**6, die_after=None, tag="", error=None):
        self.room, self.die_after, self.tag = room, die_after, tag
        self.error = error or RuntimeError("CUDA out of memory.")
        self.asked, self.batches = [], []

    def apply_chat_template(self, history, add_generation_prompt=True):
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in history)

    def tok_encode(self, text):
        return text.split()

    def tokenizer(self, text, add_special_tokens):
        return {"input_ids": text.split()}

    def generate_until(self, requests, disable_tqdm=False):
        if len(requests) > self.room:
            raise self.error
        if self.die_after is not None and len(self.batches) >= self.die_after:
            raise KeyboardInterrupt
        self.batches.append(len(requests))
        self.asked += [(request.task_name, request.doc["id"]) for request in requests]
        return [f"{self.tag}answer to {request.doc['id']}" for request in requests]

    def loglikelihood(self, requests, disable_tqdm=False):
        self.batches.append(len(requests))
        return [(-float("BADC".index(request.args[1])), False) for request in requests]


def edition(folder: Path) -> Path:
    """An edition of few questions, so that building them is quick."""
    for split in ("mcq/test", "oeq/test"):
        path = folder / "data" / f"{split}.jsonl"
        path.parent.mkdir(parents=True)
        source = items.default_folder() / "data" / f"{split}.jsonl"
        path.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:9]), "utf-8")
    return folder


def planner(home: Path, small: Path):
    """Plans jobs below a folder, of that edition."""

    def make(part=(0, 1), *, batch=4, tasks=TASKS, model="some/model", out=home, **changes):
        config = local_configs.resolve(model, "cpu")
        config.lm_eval["batch_size"] = batch
        config.lm_eval["gen_kwargs"] |= changes.pop("gen_kwargs", {})
        config.lm_eval["model_args"] |= changes.pop("model_args", {})
        return local_plan.plan(
            config,
            items.load(small),
            tasks=tasks,
            out=out,
            share=local_plan.Share(*part),
            metadata={"hk_fs_dataset": str(small)},
            **changes,
        )

    return make


def answer(job, engine):
    local_runs.run(job, load=lambda _: engine)
    return engine


def texts(folder):
    return {key: row["output"] for key, row in read_run(folder).rows.items()}
