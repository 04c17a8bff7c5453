"""The API runner's speed beside lm-eval's chat client and one call after another.

    python benchmarks/api_throughput.py [--rounds 3] [--calls 400] [--out benchmarks/results]

A local server answers each call after half a second. Every contender runs in a process of its own,
in turn, after a warm-up round, over the same prompts; what is compared is the time from the moment
when all is loaded to the last answer, in the file (ours) or in memory (lm-eval's generate_until).
Ratios are taken within a round, so that a machine that slows down slows both.

Bars: at equal concurrency at least 1.0 of lm-eval's rate; behind a cap of 10 and of 40 calls in
flight at least 80% of what the cap allows, with no answer lost; at most 5 ms of CPU a call.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LATENCY_S = 0.5
CONCURRENCY = 20
CAPS = (10, 40)
SEQUENTIAL_CALLS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--out", type=Path, help="folder for a dated result file")
    parser.add_argument("--child", choices=tuple(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--edition", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ceiling", type=int, default=CONCURRENCY, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(CONTENDERS[args.child](args)))
        return
    with tempfile.TemporaryDirectory() as folder:
        edition = write_edition(Path(folder) / "edition", args.calls)
        found = compare(args, edition)
    text = "\n".join(report(args, found))
    print(text)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"api_throughput-{datetime.date.today()}.txt"
        path.write_text(text + "\n", "utf-8")


def compare(args: argparse.Namespace, edition: Path) -> dict[str, list[dict[str, Any]]]:
    """Every contender's rounds. Round 0 is the warm-up, and is thrown away."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(args.rounds + 1):
        pair = ["ours", "lm_eval"] if number % 2 else ["lm_eval", "ours"]
        with serving(None) as url:
            for name in [*pair, "sequential"]:
                found.setdefault(name, []).append(child(name, url, edition, CONCURRENCY))
        for cap in CAPS:
            with serving(cap) as url:
                found.setdefault(f"cap {cap}", []).append(child("ours", url, edition, 100))
    return {name: rounds[1:] for name, rounds in found.items()}


class serving:
    """A server in a process of its own."""

    def __init__(self, cap: int | None) -> None:
        self.words = [sys.executable, "-m", "tests.fault_server", "--latency", str(LATENCY_S)]
        self.words += [] if cap is None else ["--cap", str(cap)]

    def __enter__(self) -> str:
        self.process = subprocess.Popen(self.words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        return f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def child(name: str, url: str, edition: Path, ceiling: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--child", name, "--url", url]
    words += ["--edition", str(edition), "--ceiling", str(ceiling)]
    env = os.environ | {
        "OPENAI_API_KEY": "none",
        "HF_HUB_OFFLINE": "1",
        "LMEVAL_LOG_LEVEL": "ERROR",
    }
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    result["load"] = os.getloadavg()[0]
    return result


def write_edition(folder: Path, n: int) -> Path:
    path = folder / "data" / "mcq" / "test.jsonl"
    path.parent.mkdir(parents=True)
    choices = [f"an option of some length, number {i}" for i in range(4)]
    question = "A storey of an office building has two staircases. What follows for question {}?"
    rows = (
        {
            "id": f"q-{i}",
            "question": question.format(i),
            "choices": choices,
            "answer": "ABCD"[i % 4],
        }
        for i in range(n)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


def ours(args: argparse.Namespace) -> dict[str, Any]:
    from hk_fs_bench import api_models, api_plan, api_runs, items

    registry = api_models.load()
    name = "local-server"
    pace = api_models.Concurrency(start=CONCURRENCY, max=args.ceiling)
    provider = registry.providers[name].model_copy(update={"concurrency": pace})
    registry = registry.model_copy(update={"providers": {name: provider}})
    with tempfile.TemporaryDirectory() as out:
        job = api_plan.plan(
            registry,
            name,
            items.load(args.edition),
            tasks=["hk_fs_mcq_hk"],
            regime="greedy",
            out=Path(out),
            service_id="m",
            base_url=args.url,
        )
        # Loading the SDK is no part of the sending; lm-eval has loaded its client by then, too.
        asyncio.run(load_sdk())
        cpu = time.process_time()
        (going,) = asyncio.run(api_runs.run([job]))
        cpu = time.process_time() - cpu
        last = going.log.path.stat().st_mtime - (time.time() - time.monotonic())
        seconds = last - going.started
        rows = len(going.log.path.read_text("utf-8").splitlines())
    return {"calls": len(job.requests), "seconds": seconds, "cpu": cpu, "answered": rows}


async def load_sdk() -> None:
    import openai

    await openai.DefaultAioHttpClient().aclose()


def lm_eval(args: argparse.Namespace) -> dict[str, Any]:
    from lm_eval.api.registry import get_model
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    from hk_fs_bench import prompts

    model = get_model("local-chat-completions")(
        model="m",
        base_url=f"{args.url}/chat/completions",
        num_concurrent=args.ceiling,
        tokenized_requests=False,
    )
    spent: dict[str, Any] = {}
    generate = model.generate_until

    def timed(requests: Any, disable_tqdm: bool = False) -> Any:
        begun, cpu = time.perf_counter(), time.process_time()
        texts = generate(requests, disable_tqdm=True)
        spent.update(
            calls=len(requests),
            seconds=time.perf_counter() - begun,
            cpu=time.process_time() - cpu,
            answered=len([text for text in texts if text]),
        )
        return texts

    model.generate_until = timed
    simple_evaluate(
        model,
        tasks=["hk_fs_mcq_hk"],
        task_manager=TaskManager(
            include_path=str(prompts.tasks_folder()),
            include_defaults=False,
            metadata={"hk_fs_dataset": str(args.edition)},
        ),
        apply_chat_template=True,
        bootstrap_iters=0,
    )
    return spent


def sequential(args: argparse.Namespace) -> dict[str, Any]:
    import openai

    from hk_fs_bench import items, prompts

    task = prompts.load_task("hk_fs_mcq_hk")
    docs = items.docs(items.load(args.edition), **task.data_options)[:SEQUENTIAL_CALLS]
    client = openai.OpenAI(base_url=args.url, max_retries=0)
    begun, cpu = time.perf_counter(), time.process_time()
    for doc in docs:
        messages: Any = [{"role": "user", "content": prompts.render(task, doc)}]
        client.chat.completions.create(model="m", messages=messages, max_tokens=512)
    return {
        "calls": len(docs),
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "answered": len(docs),
    }


CONTENDERS = {"ours": ours, "lm_eval": lm_eval, "sequential": sequential}


def report(args: argparse.Namespace, found: dict[str, list[dict[str, Any]]]) -> list[str]:
    rate = {name: [r["answered"] / r["seconds"] for r in rounds] for name, rounds in found.items()}
    cpu = [1000 * r["cpu"] / r["calls"] for r in found["ours"]]
    loads = [r["load"] for rounds in found.values() for r in rounds]
    lines = [
        f"api_throughput, {datetime.date.today()}: Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {min(loads):.1f} to {max(loads):.1f}",
        f"{args.calls} calls a round (sequential: {SEQUENTIAL_CALLS}), {LATENCY_S} s a call, "
        f"{args.rounds} rounds after a warm-up, contenders in turn; median (min to max)",
        "",
        f"ours / lm-eval, {CONCURRENCY} in flight:     {ratio(rate['ours'], rate['lm_eval'])}"
        "   bar 1.00",
        f"ours / sequential:               {ratio(rate['ours'], rate['sequential'])}",
    ]
    for cap in CAPS:
        lost = sum(r["calls"] - r["answered"] for r in found[f"cap {cap}"])
        ideal = [cap / LATENCY_S] * args.rounds
        lines.append(
            f"ours / ideal behind a cap of {cap}: {ratio(rate[f'cap {cap}'], ideal)}   bar 0.80, "
            f"answers lost: {lost}"
        )
    lines.append(f"CPU a call, ours:                {spread(cpu)} ms   bar 5")
    lines += ["", "calls a second:"]
    lines += [f"  {name:12} {spread(values)}" for name, values in rate.items()]
    return lines


def ratio(ours: list[float], others: list[float]) -> str:
    return spread([a / b for a, b in zip(ours, others, strict=True)])


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):7.3f} ({min(values):.3f} to {max(values):.3f})"


if __name__ == "__main__":
    main()
