"""What local_throughput.py measures: the model, loaded once, and what is done with it in turn."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import local_memory
import random_model

ROOT = Path(__file__).resolve().parent.parent
TASKS = ["hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq"]


class Bench:
    """The model, loaded once, and the contenders."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        import torch

        from hk_fs_bench.hf_model import CountingHF

        self.args, self.folder, self.torch = args, folder, torch
        dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
        if args.shape:
            self.pretrained = folder / args.shape
            model = random_model.make(args.shape, self.pretrained, args.device, dtype)
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(self.pretrained)
            self.lm = CountingHF(pretrained=model, tokenizer=tokenizer, batch_size=args.batch)
        else:
            from hk_fs_bench.small_model import safetensors_folder

            self.pretrained = Path(args.model or safetensors_folder(ROOT / ".cache"))
            self.lm = CountingHF(
                pretrained=str(self.pretrained),
                dtype=dtype,
                device=args.device,
                batch_size=args.batch,
            )
        self.name = args.shape or self.pretrained.name
        self.prompts = self._prompts()
        self.own_tasks = self._tasks()
        self.fits = args.batch

    def _job(self, out: Path, limit: int | None, new: int) -> Any:
        from hk_fs_bench import items, local_configs, local_plan

        scale = "one-gpu" if self.args.device == "cuda" else "cpu"
        config = local_configs.resolve(str(self.pretrained), scale)
        config.lm_eval["batch_size"] = self.args.batch
        config.lm_eval["gen_kwargs"] |= {"max_gen_toks": new, "min_new_tokens": new}
        return local_plan.plan(config, items.load(), tasks=TASKS, out=out, limit=limit)

    def _prompts(self) -> dict[str, list[Any]]:
        """The questions of each task, longest first, as lm-eval renders them."""
        from hk_fs_bench import local_runs

        job = self._job(self.folder / "none", self.args.items, self.args.new)
        found: dict[str, list[Any]] = {}
        for question in local_runs.questions(self.lm, job):
            found.setdefault(question.key[0], []).append(question)
        return found

    def _tasks(self) -> dict[str, Any]:
        """Our YAML task and lm-eval's gsm8k over the same prompts, for the same settings."""
        import lm_eval.tasks
        import yaml
        from lm_eval.tasks import TaskManager

        from hk_fs_bench import items, prompts

        n = self.args.task_items or self.args.items or len(self.prompts[TASKS[0]])
        settings = {"until": [], "max_gen_toks": self.args.alone_new, "do_sample": False}
        settings["min_new_tokens"] = self.args.alone_new
        task = prompts.load_task(TASKS[0])
        rows = items.docs(items.load(), **task.data_options)[:n]
        data = self.folder / "own.jsonl"
        told = [{"question": prompts.render(task, r), "answer": r["answer"]} for r in rows]
        data.write_text("".join(json.dumps(row) + "\n" for row in told), "utf-8")
        theirs = Path(lm_eval.tasks.__file__).parent / "gsm8k" / "gsm8k.yaml"
        changed = {
            "dataset_path": "json",
            "dataset_name": None,
            "dataset_kwargs": {"data_files": {"test": str(data)}},
            "training_split": None,
            "fewshot_split": None,
            "doc_to_text": "{{question}}",
            "num_fewshot": 0,
            "generation_kwargs": settings,
        }
        config = yaml.safe_load(theirs.read_text("utf-8")) | changed
        own = TaskManager(include_defaults=False).load([config])
        ours = TaskManager(include_path=str(prompts.tasks_folder()), include_defaults=False)
        mine = ours.load([TASKS[0]])
        mine["tasks"][TASKS[0]].set_config("generation_kwargs", settings, update=True)
        mine["tasks"][TASKS[0]].set_config("num_fewshot", 0)
        self.task_items = len(rows)
        return {"ours": mine, "own": own}

    def longest(self) -> list[Any]:
        """The questions of the first task, longest first."""
        return self.prompts[TASKS[0]]

    def warm_up(self) -> None:
        for question in self.longest()[:2]:
            self._generate(question, 4)
        self.ours(self.folder / "warm", limit=2, new=4)
        for which in self.own_tasks:
            self.task(which, 2)
        self.fits = self.args.batch

    def round(self, number: int) -> dict[str, Any]:
        work: dict[str, Callable[[], Any]] = {
            "alone": self.alone,
            "ours": lambda: self.ours(
                self.folder / f"run-{number}", self.args.items, self.args.new
            ),
            "tasks": self.tasks,
        }
        names = list(work) if number % 2 == 0 else list(work)[::-1]
        found = {name: work[name]() for name in names}
        return {name: found[name] for name in work} | {"load": os.getloadavg()[0]}

    def alone(self) -> dict[str, float]:
        """Seconds of one answer of the full length, one at a time."""
        each, weights = [], []
        for questions in self.prompts.values():
            n = self.args.alone
            for k in range(n):
                question = questions[(2 * k + 1) * len(questions) // (2 * n)]
                first = self._generate(question, 1)
                more = self._generate(question, self.args.alone_new) - first
                token = max(0.0, more) / (self.args.alone_new - 1)
                each.append(first + token * (self.args.new - 1))
                weights.append(len(questions))  # As many of each task as ours answers.
        return {"n": len(each), "seconds": statistics.fmean(each, weights)}

    def _generate(self, question: Any, new: int) -> float:
        told = self.lm.tokenizer(question.context, return_tensors="pt", add_special_tokens=False)
        told = told.to(self.lm.device)
        begun = time.perf_counter()
        out = self.lm.model.generate(
            **told,
            max_new_tokens=new,
            min_new_tokens=new,
            do_sample=False,
            pad_token_id=self.lm.tokenizer.pad_token_id,
        )
        out.tolist()
        return time.perf_counter() - begun

    def ours(self, out: Path, limit: int | None, new: int) -> dict[str, Any]:
        from hk_fs_bench import local_runs, runs

        local_memory.reset_peak(self.args.device)
        begun = time.perf_counter()
        job = self._job(out, limit, new)
        progress = local_runs.run(job, load=lambda _: self.lm)
        seconds = time.perf_counter() - begun
        run = runs.read_run(job.folder)
        rows = run.rows.values()
        # The two tasks have these prompts, and nothing that halves a batch.
        self.fits = max(row["performance"]["batch"] for row in run.of_task(TASKS[0]))
        tokens = [row["token_usage"]["output_tokens"] for row in rows]
        assert set(tokens) == {new}, f"answers of {min(tokens)} to {max(tokens)} tokens"
        generating = sum(row["performance"]["batch_share_ms"] for row in rows) / 1000
        return {
            "n": len(rows),
            "tokens": sum(tokens),
            "seconds": seconds,
            "generating": generating,
            # How many batches of each size.
            "batches": {
                size: n // size
                for size, n in sorted(Counter(r["performance"]["batch"] for r in rows).items())
            },
            "prompt": statistics.fmean(row["token_usage"]["input_tokens"] for row in rows),
            "halved": progress.halved,
            "peak": local_memory.peak(self.args.device),
        }

    def tasks(self) -> dict[str, Any]:
        """Our task and lm-eval's own, each twice: a machine that drifts favours neither.

        At most at the batch of `ours`; where memory runs out all the same, at half of it, anew.
        """
        from hk_fs_bench.local_batches import free_memory, out_of_memory

        while True:
            free_memory()
            try:
                return self._tasks_at_one_batch()
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error) or self.fits == 1:
                    raise
                self.fits //= 2

    def _tasks_at_one_batch(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for which in ("ours", "own", "own", "ours"):
            told = self.task(which)
            before = found.get(which, {})
            added = {n: before.get(n, 0) + told[n] for n in ("n", "seconds", "generating")}
            found[which] = added | {"asked": told["asked"], "batch": self.fits}
        assert found["ours"]["asked"] == found["own"]["asked"], "other prompts"
        return found

    def task(self, which: str, limit: int | None = None) -> dict[str, Any]:
        """A task through lm-eval's evaluator: all its seconds, and those of generation in them."""
        from lm_eval.evaluator import evaluate

        self.lm.batch_size_per_gpu = self.fits
        told: dict[str, Any] = {"n": limit or self.task_items, "generating": 0.0}
        generate = self.lm.generate_until

        def timed(requests: list[Any], **kw: Any) -> list[str]:
            begun = time.perf_counter()
            texts: list[str] = generate(requests, **kw)
            told["generating"] += time.perf_counter() - begun
            asked = repr([request.args for request in requests])
            told["asked"] = hashlib.sha256(asked.encode()).hexdigest()
            return texts

        self.lm.generate_until = timed
        begun = time.perf_counter()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                evaluate(
                    self.lm,
                    self.own_tasks[which],
                    limit=limit or self.task_items,
                    bootstrap_iters=0,
                    apply_chat_template=True,
                )
        finally:
            del self.lm.generate_until
        return told | {"seconds": time.perf_counter() - begun}

    def batch(self, questions: list[Any], new: int) -> float:
        """Seconds of one batch of answers, through lm-eval's model."""
        settings = {"until": [], "max_gen_toks": new, "min_new_tokens": new, "do_sample": False}
        from lm_eval.api.instance import Instance

        self.lm.batch_size_per_gpu = len(questions)
        asked = [Instance("generate_until", {}, (q.context, dict(settings)), 0) for q in questions]
        begun = time.perf_counter()
        self.lm.generate_until(asked, disable_tqdm=True)
        return time.perf_counter() - begun
