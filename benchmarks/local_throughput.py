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
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import local_engines  # noqa: E402
import local_memory  # noqa: E402
import local_report  # noqa: E402
import random_model  # noqa: E402
import roofline  # noqa: E402
from local_contenders import Bench  # noqa: E402

# A CPU that answers with 512 tokens would need hours for a round. On a GPU three rounds of all 900
# prompts take most of the minutes that there are, so the two others are short.
DEFAULTS = {
    "cpu": {"new": 64, "batch": 32, "task_items": 32, "alone_new": 16},
    "cuda": {"new": 512, "batch": 512, "task_items": 128, "alone_new": 32},
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", help="a model's folder; default: SmolLM2")
    parser.add_argument("--shape", choices=tuple(random_model.SHAPES), help="random weights")
    parser.add_argument("--new", type=int, help="new tokens of every answer")
    parser.add_argument("--items", type=int, help="prompts a task for ours, of all")
    parser.add_argument("--alone", type=int, default=8, help="prompts a task one by one")
    parser.add_argument("--alone-new", type=int, help="tokens timed of each of those")
    parser.add_argument("--task-items", type=int, help="prompts of the two tasks")
    parser.add_argument("--batch", type=int, help="answers at once, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, help="seconds for all rounds")
    # What the process is told that measures memory on a CPU; see local_memory.py.
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
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
    target = free_name(args.out, args.device) if args.out and not args.memory else None
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        if args.memory:
            print("\n".join(local_memory.lines(bench)))
            return
        say(f"loaded after {time.monotonic() - begun:.0f} s")
        machine = roofline.measure(args.device, bench.lm.model.dtype)
        bench.warm_up()
        say(f"warm after {time.monotonic() - begun:.0f} s")
        rounds, started = [], time.monotonic()
        for number in range(args.rounds):
            at = time.monotonic()
            rounds.append(bench.round(number))
            say(f"round {number + 1}: {time.monotonic() - at:.0f} s; {rounds[-1]}")
            # The limit is what the machine can do at best, and not what it could in a bad moment.
            machine = machine.or_better(roofline.measure(args.device, bench.lm.model.dtype))
            # What is measured is kept at once: a round may be the last that there is time for.
            lines = local_report.lines(args, bench, machine, rounds)
            write(target, rounds, lines, begun)
            left = (args.budget or math.inf) - (time.monotonic() - started)
            if number + 1 < args.rounds and left < time.monotonic() - at:
                say(f"the budget of {args.budget:.0f} s ends the measurement")
                break
        if args.device == "cuda":
            lines += local_memory.lines(bench)
        else:
            lines += local_memory.in_a_process([__file__, *sys.argv[1:], "--memory"])
        write(target, rounds, lines, begun)
        print("\n".join(lines), flush=True)
        # After all that is to be kept: a compiler may take its time.
        if args.device == "cuda" and time.monotonic() - begun < (args.budget or math.inf):
            for line in local_engines.lines(bench):
                print(line, flush=True)
                lines.append(line)
                write(target, rounds, lines, begun)
        print(write(target, rounds, lines, begun), flush=True)


def free_name(folder: Path, device: str) -> Path:
    """A dated name, without suffix, that no earlier result has."""
    folder.mkdir(parents=True, exist_ok=True)
    name, number = f"local_throughput-{device}-{datetime.date.today()}", 1
    while any(folder.glob(f"{name}{f'-{number}' if number > 1 else ''}.*")):
        number += 1
    return folder / (name if number == 1 else f"{name}-{number}")


def write(target: Path | None, rounds: list[dict[str, Any]], lines: list[str], begun: float) -> str:
    """Keep what is known so far; the line that ends it."""
    last = f"all of it: {time.monotonic() - begun:.0f} s"
    if target:
        target.with_name(f"{target.name}.txt").write_text("\n".join([*lines, last, ""]), "utf-8")
        told = json.dumps(rounds, indent=2) + "\n"
        target.with_name(f"{target.name}.json").write_text(told, "utf-8")
    return last


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
