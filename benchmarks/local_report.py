"""What local_throughput.py prints of its rounds: ratios with their bars, and what they are of."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import roofline

if TYPE_CHECKING:
    from local_contenders import Bench

BARS = {"cpu": (2.0, None), "cuda": (50.0, 0.25)}
PACKAGES = ("torch", "transformers", "lm_eval", "accelerate", "tokenizers", "datasets")


def lines(
    args: argparse.Namespace, bench: Bench, machine: roofline.Machine, rounds: list[dict[str, Any]]
) -> list[str]:
    """What a person reads: ratios with their bars, then what they are made of."""
    first, alone = rounds[0]["ours"], rounds[0]["alone"]
    shape = roofline.Shape.of(bench.lm.model)
    prompt = first["prompt"]
    at_best, with_prompts = of_the_limit(machine, shape, rounds, args.new)
    ours = [r["ours"]["n"] / r["ours"]["seconds"] for r in rounds]
    one = [1 / r["alone"]["seconds"] for r in rounds]
    whole = [r["ours"]["tokens"] / r["ours"]["seconds"] for r in rounds]
    speed = [r["ours"]["tokens"] / r["ours"]["generating"] for r in rounds]
    sizes = "; ".join(dict.fromkeys(batches_of(r["ours"]["batches"]) for r in rounds))
    tasks, around = task_ratios(rounds)
    loads = [r["load"] for r in rounds]
    times, share = BARS[args.device]
    said = [
        f"local_throughput, {datetime.date.today()}: {bench.name}, {device_name(args, bench)}, "
        f"{bench.lm.model.dtype}, load {min(loads):.1f} to {max(loads):.1f}",
        "versions: " + ", ".join(f"{p} {version_of(p)}" for p in ("python", *PACKAGES)),
        *attention_lines(bench.lm.model),
        f"{len(rounds)} rounds, contenders in turn; median (min to max); {args.new} new tokens an "
        "answer",
        "",
        f"ours / alone: {against([a / b for a, b in zip(ours, one, strict=True)], times)}",
        f"  ours: {first['n']} answers a round, {spread(ours)} answers/s, {spread(whole)} tokens/s",
        f"  alone: {alone['n']} answers a round ({args.alone} a task), {spread(one)} answers/s; "
        f"the first and {args.alone_new - 1} further tokens of each timed, scaled to {args.new}",
        f"our task / lm-eval's own: {against(tasks, 0.95)}",
        f"  items a second of hk_fs_mcq_hk and gsm8k, {rounds[0]['tasks']['ours']['n']} answers of "
        f"{args.alone_new} tokens to the same prompts, batch {tasks_at(rounds)}; around "
        f"generating, ms an item: ours {spread(around['ours'])}, lm-eval's own "
        f"{spread(around['own'])}",
        f"ours / limit of its steps: {against(at_best, share)}",
        f"  generating: {spread(speed)} new tokens/s; batches of {sizes}",
        f"ours / limit with the prompts' reading: {spread(with_prompts)}",
        "",
        f"roofline: {machine.bandwidth / 1e9:.1f} GB/s, {machine.arithmetic / 1e12:.3f} TFLOP/s, "
        "both measured",
        f"  weights {shape.weight_bytes / 1e9:.2f} GB, cache {shape.cache_bytes / 1e3:.0f} kB a "
        f"token, prompts of {prompt:.0f} tokens",
    ]
    for size in sorted({1}.union(*(r["ours"]["batches"] for r in rounds))):
        at = roofline.limit(machine, shape, size, prompt, args.new)
        said.append(
            f"  batch {size}: a step {1000 * at.memory:.2f} ms by memory, "
            f"{1000 * at.arithmetic:.2f} ms by arithmetic; prompts {1000 * at.prefill:.0f} ms; at "
            f"most {at.decoding:.0f} tokens/s, {at.whole:.0f} with the prompts' reading"
        )
    halved = sum(r["ours"]["halved"] for r in rounds)
    said.append(f"memory ran out, and a batch was halved: {halved} times")
    if peaks := [r["ours"]["peak"] for r in rounds if r["ours"]["peak"]]:
        said.append(f"peak memory of the run: {max(peaks) / 1e9:.2f} GB")
    return said


def of_the_limit(
    machine: roofline.Machine, shape: roofline.Shape, rounds: list[dict[str, Any]], new: int
) -> tuple[list[float], list[float]]:
    """What each round reached of what its own batches could at best.

    Returns:
        Of their steps; and of the steps and the reading of the prompts.
    """
    found = []
    for ours in (r["ours"] for r in rounds):
        best = roofline.seconds(machine, shape, ours["batches"], ours["prompt"], new)
        found.append([seconds / ours["generating"] for seconds in best])
    return [one[0] for one in found], [one[1] for one in found]


def batches_of(batches: dict[int, int]) -> str:
    return ", ".join(f"{size} ({n} of them)" for size, n in batches.items())


def tasks_at(rounds: list[dict[str, Any]]) -> str:
    return " and ".join(map(str, sorted({r["tasks"]["ours"]["batch"] for r in rounds})))


def attention_lines(model: Any) -> list[str]:
    """Where the model's attention is not transformers' own, that it is not."""
    name = model.config._attn_implementation
    if name != "packed_sdpa":
        return []
    return [
        f"attention: {name} (random_model.py), as transformers has it from 5.24 on; a local run "
        "uses what is installed, which reads the keys and values once for every head"
    ]


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
