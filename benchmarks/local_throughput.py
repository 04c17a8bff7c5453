"""Local runs' speed beside one question at a time, and beside what the machine could do at best.

    python benchmarks/local_throughput.py [--rounds 3] [--out benchmarks/results]   # an hour on CPU
    python benchmarks/local_throughput.py --items 16 --rounds 1                     # a first look
    python benchmarks/local_throughput.py --device cuda --shape qwen2.5-7b    # random weights

Every answer has the same number of new tokens, whatever the weights would say. In each round, in
turn, in one process that has loaded the model once:

    alone   transformers' generate, one prompt at a time, as in the paper: items of each task at
            even steps of prompt length. The first token and each further one are timed apart, and
            added up to the full length
    ours    a whole local run of the scale's config, all 900 prompts: requests built, batched,
            generated, every answer in its file
    tasks   our YAML task and lm-eval's own gsm8k task, both through lm-eval's evaluator, over the
            same prompts, in the order ours, own, own, ours

Ratios are taken within a round, so that a machine that slows down slows both. The limit is computed
from the measured bandwidth and arithmetic (benchmarks/roofline.py).

Bars: on two CPU cores ours at least 2 times alone; on one GPU of the H200's class with 512 tokens
at least 50 times, and at least 25% of the limit of a step at that batch; our task at least 0.95
times lm-eval's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import random_model  # noqa: E402
import roofline  # noqa: E402
from local_contenders import Bench  # noqa: E402

# A CPU that answers with 512 tokens would need hours for a round.
DEFAULTS = {"cpu": {"new": 64, "batch": 32, "task_items": 32}, "cuda": {"new": 512, "batch": 512}}
BARS = {"cpu": (2.0, None), "cuda": (50.0, 0.25)}
PACKAGES = ("torch", "transformers", "lm_eval", "accelerate", "tokenizers", "datasets")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", help="a model's folder; default: SmolLM2")
    parser.add_argument("--shape", choices=tuple(random_model.SHAPES), help="random weights")
    parser.add_argument("--new", type=int, help="new tokens of every answer")
    parser.add_argument("--items", type=int, help="prompts a task for ours, of all")
    parser.add_argument("--alone", type=int, default=8, help="prompts a task one by one")
    parser.add_argument("--alone-new", type=int, default=16, help="tokens timed of each of those")
    parser.add_argument("--task-items", type=int, help="prompts of the two tasks; cuda: all")
    parser.add_argument("--batch", type=int, help="answers at once, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, help="seconds for all rounds")
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
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    logging.getLogger("lm_eval").setLevel("ERROR")
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
            left = (args.budget or math.inf) - (time.monotonic() - started)
            if number + 1 < args.rounds and left < time.monotonic() - at:
                say(f"the budget of {args.budget:.0f} s ends the measurement")
                break
        lines = report(args, bench, machine, rounds) + bench.memory_lines()
        write(args, rounds, lines, begun)
        # After all that is to be kept: a compiler may take its time.
        if args.device == "cuda" and time.monotonic() - begun < (args.budget or math.inf):
            write(args, rounds, lines + bench.engine_lines(), begun)


def write(
    args: argparse.Namespace, rounds: list[dict[str, Any]], lines: list[str], begun: float
) -> None:
    text = "\n".join([*lines, f"all of it: {time.monotonic() - begun:.0f} s"])
    print(text, flush=True)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        name = f"local_throughput-{args.device}-{datetime.date.today()}"
        (args.out / f"{name}.txt").write_text(text + "\n", "utf-8")
        (args.out / f"{name}.json").write_text(json.dumps(rounds, indent=2) + "\n", "utf-8")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(
    args: argparse.Namespace, bench: Bench, machine: roofline.Machine, rounds: list[dict[str, Any]]
) -> list[str]:
    """What a person reads: ratios with their bars, then what they are made of."""
    first, alone = rounds[0]["ours"], rounds[0]["alone"]
    shape = roofline.Shape.of(bench.lm.model)
    prompt = first["prompt"]
    bound = {
        size: roofline.limit(machine, shape, size, prompt, args.new)
        for size in sorted({1, *first["batches"]})
    }
    # At best: the seconds of all steps of all batches, and with the reading of the prompts.
    steps = sum(n * args.new * bound[size].step for size, n in first["batches"].items())
    every = steps + sum(n * bound[size].prefill for size, n in first["batches"].items())
    ours = [r["ours"]["n"] / r["ours"]["seconds"] for r in rounds]
    one = [1 / r["alone"]["seconds"] for r in rounds]
    whole = [r["ours"]["tokens"] / r["ours"]["seconds"] for r in rounds]
    generating = [r["ours"]["generating"] for r in rounds]
    speed = [r["ours"]["tokens"] / r["ours"]["generating"] for r in rounds]
    sizes = ", ".join(f"{size} ({n} of them)" for size, n in first["batches"].items())
    tasks, around = task_ratios(rounds)
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
        f"  items a second of hk_fs_mcq_hk and gsm8k, {rounds[0]['tasks']['ours']['n']} answers of "
        f"{args.alone_new} tokens to the same prompts; around generating, ms an item: ours "
        f"{spread(around['ours'])}, lm-eval's own {spread(around['own'])}",
        f"ours / limit of its steps: {against([steps / s for s in generating], share)}",
        f"  generating: {spread(speed)} new tokens/s; batches of {sizes}",
        f"ours / limit with the prompts' reading: {spread([every / s for s in generating])}",
        "",
        f"roofline: {machine.bandwidth / 1e9:.1f} GB/s, {machine.arithmetic / 1e12:.3f} TFLOP/s, "
        "both measured",
        f"  weights {shape.weight_bytes / 1e9:.2f} GB, cache {shape.cache_bytes / 1e3:.0f} kB a "
        f"token, prompts of {prompt:.0f} tokens",
    ]
    for size, at in bound.items():
        lines.append(
            f"  batch {size}: a step {1000 * at.memory:.2f} ms by memory, "
            f"{1000 * at.arithmetic:.2f} ms by arithmetic; prompts {1000 * at.prefill:.0f} ms; at "
            f"most {at.decoding:.0f} tokens/s, {at.whole:.0f} with the prompts' reading"
        )
    halved = sum(r["ours"]["halved"] for r in rounds)
    lines.append(f"memory ran out, and a batch was halved: {halved} times")
    if first["peak"]:
        lines.append(f"peak memory of the run: {first['peak'] / 1e9:.2f} GB")
    return lines


def task_ratios(rounds: list[dict[str, Any]]) -> tuple[list[float], dict[str, list[float]]]:
    """Our task's items a second over lm-eval's, a round each; and what each task's own work is.

    Both have the engine generate the same answers to the same prompts, which takes nearly all of
    the time and has all of its noise.

    Returns:
        The ratios; by task, the milliseconds an item around generating.
    """
    around = {
        name: [
            1000
            * (r["tasks"][name]["seconds"] - r["tasks"][name]["generating"])
            / r["tasks"][name]["n"]
            for r in rounds
        ]
        for name in ("ours", "own")
    }
    return [r["tasks"]["own"]["seconds"] / r["tasks"]["ours"]["seconds"] for r in rounds], around


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
