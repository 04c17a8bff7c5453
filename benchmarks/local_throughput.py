"""Local runs' speed beside one question at a time, and beside what the machine could do at best.

    python benchmarks/local_throughput.py [--rounds 3] [--budget 480] [--out benchmarks/results]
    python benchmarks/local_throughput.py --device cuda --shape qwen2.5-7b    # random weights

Every answer has the same number of new tokens, whatever the weights would say. In each round, in
turn, in one process that has loaded the model once:

    alone   transformers' generate, one prompt at a time, as in the paper: items of each task at
            even steps of prompt length. The first token and each further one are timed apart, and
            added up to the full length
    ours    a whole local run: requests built, batched, generated, every answer in its file
    tasks   our YAML task and lm-eval's own gsm8k task, both through lm-eval's evaluator, over the
            same prompts: what filters and metrics cost

Ratios are taken within a round, so that a machine that slows down slows both. The limit is computed
from the measured bandwidth and arithmetic (benchmarks/roofline.py).

Bars: on two CPU cores ours at least 2 times alone; on one GPU of the H200's class with 512 tokens
at least 50 times, and at least 25% of the limit of a step at that batch; our task at least 0.95
times lm-eval's.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import random_model  # noqa: E402
import roofline  # noqa: E402

TASKS = ["hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq"]
DEFAULTS = {"cpu": {"items": 16, "new": 64, "batch": 16}, "cuda": {"new": 512, "batch": 512}}
BARS = {"cpu": (2.0, None), "cuda": (50.0, 0.25)}
PACKAGES = ("torch", "transformers", "lm_eval", "accelerate", "tokenizers", "datasets")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", help="a model's folder; default: SmolLM2")
    parser.add_argument("--shape", choices=tuple(random_model.SHAPES), help="random weights")
    parser.add_argument("--new", type=int, help="new tokens of every answer")
    parser.add_argument("--items", type=int, help="prompts a task for ours; cuda: all of them")
    parser.add_argument("--alone", type=int, default=8, help="prompts a task one by one")
    parser.add_argument("--alone-new", type=int, default=24, help="tokens timed of each of those")
    parser.add_argument("--batch", type=int, help="answers at once, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=480, help="seconds for all rounds")
    parser.add_argument("--out", type=Path, help="folder for a dated result file")
    args = parser.parse_args()
    for name, value in DEFAULTS[args.device].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.alone_new = max(2, min(args.alone_new, args.new))
    return args


def main() -> None:
    begun = time.monotonic()
    args = arguments()
    os.environ |= {"HF_HUB_OFFLINE": "1", "LMEVAL_LOG_LEVEL": "ERROR", "TQDM_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        say(f"loaded after {time.monotonic() - begun:.0f} s")
        machine = roofline.measure(args.device, bench.lm.model.dtype)
        bench.warm_up()
        rounds, started = [], time.monotonic()
        for number in range(args.rounds):
            at = time.monotonic()
            rounds.append(bench.round(number))
            say(f"round {number + 1}: {time.monotonic() - at:.0f} s; {rounds[-1]}")
            left = args.budget - (time.monotonic() - started)
            if number + 1 < args.rounds and left < time.monotonic() - at:
                say(f"the budget of {args.budget:.0f} s ends the measurement")
                break
        lines = report(args, bench, machine, rounds)
        lines += bench.memory_lines()
        if args.device == "cuda" and begun + args.budget > time.monotonic():
            lines += bench.engine_lines()
    lines.append(f"all of it: {time.monotonic() - begun:.0f} s")
    text = "\n".join(lines)
    print(text)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        name = f"local_throughput-{args.device}-{datetime.date.today()}"
        (args.out / f"{name}.txt").write_text(text + "\n", "utf-8")
        (args.out / f"{name}.json").write_text(json.dumps(rounds, indent=2) + "\n", "utf-8")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


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

        job = self._job(self.folder / "none", None, self.args.new)
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

        n = self.args.items or len(self.prompts[TASKS[0]])
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

    def warm_up(self) -> None:
        for question in self.prompts[TASKS[0]][:2]:
            self._generate(question, 4)
        self.ours(self.folder / "warm", limit=2, new=4)
        for which in self.own_tasks:
            self.task(which, 2)

    def round(self, number: int) -> dict[str, Any]:
        work: dict[str, Callable[[], Any]] = {
            "alone": self.alone,
            "ours": lambda: self.ours(
                self.folder / f"run-{number}", self.args.items, self.args.new
            ),
            "task ours": lambda: self.task("ours"),
            "task own": lambda: self.task("own"),
        }
        names = list(work) if number % 2 == 0 else list(work)[::-1]
        found = {name: work[name]() for name in names}
        return {name: found[name] for name in work} | {"load": os.getloadavg()[0]}

    def alone(self) -> dict[str, float]:
        """Seconds of one answer of the full length, one at a time."""
        each = []
        for questions in self.prompts.values():
            n = self.args.alone
            for k in range(n):
                question = questions[(2 * k + 1) * len(questions) // (2 * n)]
                first = self._generate(question, 1)
                more = self._generate(question, self.args.alone_new) - first
                token = max(0.0, more) / (self.args.alone_new - 1)
                each.append(first + token * (self.args.new - 1))
        return {"n": len(each), "seconds": statistics.fmean(each)}

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

        self._reset_peak()
        begun = time.perf_counter()
        job = self._job(out, limit, new)
        progress = local_runs.run(job, load=lambda _: self.lm)
        seconds = time.perf_counter() - begun
        rows = runs.read_run(job.folder).rows.values()
        tokens = [row["token_usage"]["output_tokens"] for row in rows]
        assert set(tokens) == {new}, f"answers of {min(tokens)} to {max(tokens)} tokens"
        generating = sum(row["performance"]["batch_share_ms"] for row in rows) / 1000
        return {
            "n": len(rows),
            "tokens": sum(tokens),
            "seconds": seconds,
            "generating": generating,
            "batches": sorted({row["performance"]["batch"] for row in rows}),
            "prompt": statistics.fmean(row["token_usage"]["input_tokens"] for row in rows),
            "halved": progress.halved,
            "peak": self._peak(),
        }

    def task(self, which: str, limit: int | None = None) -> dict[str, float]:
        from lm_eval.evaluator import evaluate

        self.lm.batch_size_per_gpu = self.args.batch
        begun = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            evaluate(
                self.lm,
                self.own_tasks[which],
                limit=limit or self.task_items,
                bootstrap_iters=0,
                apply_chat_template=True,
            )
        return {"n": self.task_items, "seconds": time.perf_counter() - begun}

    def _reset_peak(self) -> None:
        if self.args.device == "cuda":
            self.torch.cuda.reset_peak_memory_stats()
        else:
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")

    def _peak(self) -> float | None:
        """Bytes at most since the reset: of the GPU, or of this process."""
        if self.args.device == "cuda":
            return float(self.torch.cuda.max_memory_allocated())
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM"):
                    return 1024.0 * int(line.split()[1])
        return None

    def memory_lines(self) -> list[str]:
        """Peak memory at several batch sizes."""
        sizes = sorted(
            {1, max(1, self.args.batch // 4), max(1, self.args.batch // 2), self.args.batch}
        )
        lines, found = [], []
        for size in sizes:
            batch = self.prompts[TASKS[0]][:size]
            self._reset_peak()
            self._batch(batch, self.args.alone_new)
            if (peak := self._peak()) is None:
                return ["peak memory: not known on this system"]
            found.append((len(batch), peak))
            lines.append(f"  batch {len(batch)}: {peak / 1e9:.2f} GB")
        (small, low), (large, high) = found[0], found[-1]
        growth = (high - low) / max(1, large - small) / 1e6
        head = f"peak memory, {self.args.alone_new} new tokens, the longest prompts:"
        return [head, *lines, f"  growth: {growth:.1f} MB an answer of the batch"]

    def _batch(self, questions: list[Any], new: int) -> float:
        settings = {"until": [], "max_gen_toks": new, "min_new_tokens": new, "do_sample": False}
        from lm_eval.api.instance import Instance

        self.lm.batch_size_per_gpu = len(questions)
        asked = [Instance("generate_until", {}, (q.context, dict(settings)), 0) for q in questions]
        begun = time.perf_counter()
        self.lm.generate_until(asked, disable_tqdm=True)
        return time.perf_counter() - begun

    def engine_lines(self) -> list[str]:
        """What else transformers offers, briefly: a compiled static cache, continuous batching."""
        questions = self.prompts[TASKS[0]][: self.args.batch]
        ids = [self.lm.tok_encode(q.context, add_special_tokens=False) for q in questions]
        new = self.args.alone_new
        lines = [f"engines of transformers, {len(questions)} prompts, {new} new tokens each:"]
        for name, work in {
            "as run": lambda: self._batch(questions, new),
            "static cache, compiled": lambda: self._static(questions, new),
            "continuous batching": lambda: self._continuous(ids, new),
        }.items():
            try:
                seconds = [work(), work()][1]  # The first compiles.
                lines.append(f"  {name}: {len(questions) * new / seconds:.0f} tokens/s")
            except Exception as error:
                lines.append(
                    f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
                )
        return lines

    def _static(self, questions: list[Any], new: int) -> float:
        ids, mask = self.lm.tok_batch_encode([q.context for q in questions])
        begun = time.perf_counter()
        self.lm.model.generate(
            input_ids=ids.to(self.lm.device),
            attention_mask=mask.to(self.lm.device),
            max_new_tokens=new,
            min_new_tokens=new,
            do_sample=False,
            cache_implementation="static",
            pad_token_id=self.lm.tokenizer.pad_token_id,
        ).tolist()
        return time.perf_counter() - begun

    def _continuous(self, ids: list[list[int]], new: int) -> float:
        from transformers import GenerationConfig

        config = GenerationConfig(max_new_tokens=new, do_sample=False, eos_token_id=-1)
        begun = time.perf_counter()
        found = self.lm.model.generate_batch(ids, generation_config=config)
        assert all(len(one.generated_tokens) == new for one in found.values())
        return time.perf_counter() - begun


def report(
    args: argparse.Namespace, bench: Bench, machine: roofline.Machine, rounds: list[dict[str, Any]]
) -> list[str]:
    """What a person reads: ratios with their bars, then what they are made of."""
    first, alone = rounds[0]["ours"], rounds[0]["alone"]
    shape = roofline.Shape.of(bench.lm.model)
    bound = roofline.limit(machine, shape, max(first["batches"]), first["prompt"], args.new)
    single = roofline.limit(machine, shape, 1, first["prompt"], args.new)
    ours = [r["ours"]["n"] / r["ours"]["seconds"] for r in rounds]
    one = [1 / r["alone"]["seconds"] for r in rounds]
    whole = [r["ours"]["tokens"] / r["ours"]["seconds"] for r in rounds]
    speed = [r["ours"]["tokens"] / r["ours"]["generating"] for r in rounds]
    tasks = [r["task own"]["seconds"] / r["task ours"]["seconds"] for r in rounds]
    loads = [r["load"] for r in rounds]
    times, share = BARS[args.device]
    lines = [
        f"local_throughput, {datetime.date.today()}: {bench.name}, {device_name(args, bench)}, "
        f"{bench.lm.model.dtype}, load {min(loads):.1f} to {max(loads):.1f}",
        "versions: " + ", ".join(f"{p} {version_of(p)}" for p in ("python", *PACKAGES)),
        f"{len(rounds)} rounds, contenders in turn; median (min to max); {args.new} new tokens an "
        "answer",
        "",
        f"ours / alone: {against([a / b for a, b in zip(ours, one, strict=True)], times)}",
        f"  ours: {first['n']} answers a round, {spread(ours)} answers/s, {spread(whole)} tokens/s",
        f"  alone: {alone['n']} answers a round ({args.alone} a task), {spread(one)} answers/s; "
        f"the first and {args.alone_new - 1} further tokens of each timed, scaled to {args.new}",
        f"our task / lm-eval's own: {against(tasks, 0.95)}",
        f"  {bench.task_items} answers of {args.alone_new} tokens, hk_fs_mcq_hk beside gsm8k",
        f"ours / limit of a step: {against([value / bound.decoding for value in speed], share)}",
        f"  generating: {spread(speed)} new tokens/s, batches of {first['batches']}",
        f"ours / limit with the prompts' reading: {spread([v / bound.whole for v in speed])}",
        "",
        f"roofline: {machine.bandwidth / 1e9:.1f} GB/s, {machine.arithmetic / 1e12:.3f} TFLOP/s, "
        "both measured",
        f"  weights {shape.weight_bytes / 1e9:.2f} GB, cache {shape.cache_bytes / 1e3:.0f} kB a "
        f"token, prompts of {first['prompt']:.0f} tokens",
    ]
    for name, at in (("ours", bound), ("alone", single)):
        lines.append(
            f"  {name}, batch {at.batch}: a step {1000 * at.memory:.2f} ms by memory, "
            f"{1000 * at.arithmetic:.2f} ms by arithmetic; prompts {1000 * at.prefill:.0f} ms; at "
            f"most {at.decoding:.0f} tokens/s, {at.whole:.0f} with the prompts' reading"
        )
    halved = sum(r["ours"]["halved"] for r in rounds)
    lines.append(f"memory ran out, and a batch was halved: {halved} times")
    if first["peak"]:
        lines.append(f"peak memory of the run: {first['peak'] / 1e9:.2f} GB")
    return lines


def device_name(args: argparse.Namespace, bench: Bench) -> str:
    if args.device == "cuda":
        return str(bench.torch.cuda.get_device_name())
    return f"{os.cpu_count()} cores ({platform.machine()}), {bench.torch.get_num_threads()} threads"


def version_of(package: str) -> str:
    if package == "python":
        return platform.python_version()
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def against(values: list[float], bar: float | None) -> str:
    if bar is None:
        return f"{spread(values)}; no bar on this device"
    held = "held" if statistics.median(values) >= bar else "NOT HELD"
    return f"{spread(values)}; bar {bar:g}: {held}"


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
