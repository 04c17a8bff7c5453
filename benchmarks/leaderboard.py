"""The time that the default check and the build of a board take, and how it grows.

    python benchmarks/leaderboard.py [--submissions 50 200 1000] [--rounds 3] [--keep DIR]
        [--out benchmarks/results]

Made-up complete runs of 900 answers, submitted by many accounts. `validate` and then `build` run as
commands with an empty cache, as on a machine that sees the submissions for the first time; what the
check has scored the build finds. A second `validate` shows what an unchanged board costs.

Bars: 50 submissions validated and built under 10 s on two cores; 1,000 in linear time.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

CHUNK = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--submissions", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="folder of made submissions, used again")
    parser.add_argument("--out", type=Path, help="folder for a dated result file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as held:
        made = args.keep or Path(held, "made")
        names = make(made, max(args.submissions))
        lines = [
            f"{datetime.date.today()} {platform.python_version()} {os.cpu_count()} cores",
            "submissions  validate s     build s  sum s (rounds)            again s  ms each",
        ]
        for n in args.submissions:
            rounds = [measure(made, names[:n], Path(held)) for _ in range(args.rounds)]
            lines.append(report(n, rounds))
            print("\n".join(lines[-3:] if n == args.submissions[0] else lines[-1:]), flush=True)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"leaderboard-{datetime.date.today()}.txt"
        path.write_text("\n".join(lines) + "\n", "utf-8")


def report(n: int, rounds: list[tuple[float, float, float]]) -> str:
    check, build, again = (statistics.median(times) for times in zip(*rounds, strict=True))
    sums = sorted(one[0] + one[1] for one in rounds)
    spread = ", ".join(f"{s:.1f}" for s in sums)
    middle = statistics.median(sums)
    return (
        f"{n:11}  {check:10.1f}  {build:10.1f}  {middle:5.1f} ({spread})".ljust(62)
        + f"{again:9.1f}  {1000 * middle / n:7.0f}"
    )


def measure(made: Path, names: list[str], scratch: Path) -> tuple[float, float, float]:
    """Seconds of validate, build, and validate again."""
    root, cache = scratch / "board", scratch / "cache"
    for folder in (root, cache):
        shutil.rmtree(folder, ignore_errors=True)
    (root / "submissions").mkdir(parents=True)
    for name in names:
        shutil.copytree(made / name, root / "submissions" / name)
    env = os.environ | {"XDG_CACHE_HOME": str(cache)}
    times = []
    for command in ("validate", "build", "validate"):
        words = [sys.executable, str(ROOT / "scripts" / "leaderboard.py"), command]
        begun = time.perf_counter()
        done = subprocess.run(
            [*words, "--root", str(root)], env=env, capture_output=True, text=True
        )
        times.append(time.perf_counter() - begun)
        if done.returncode:
            raise SystemExit(f"{command} failed:\n{done.stdout[-3000:]}{done.stderr}")
    return times[0], times[1], times[2]


def make(folder: Path, count: int) -> list[str]:
    """At least `count` submissions in `folder`; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    known = sorted(path.name for path in folder.iterdir())
    chunks = [range(start, min(start + CHUNK, count)) for start in range(len(known), count, CHUNK)]
    with ProcessPoolExecutor() as pool:
        for names in pool.map(make_chunk, [folder] * len(chunks), chunks):
            known += names
            print(f"made {len(known)}", file=sys.stderr)
    return known


def make_chunk(folder: Path, numbers: range) -> list[str]:
    from hk_fs_bench import items, open_metrics, runs, scoring
    from hk_fs_bench.leaderboard import entries, submitting
    from tests.submissions import make_run

    dataset = items.load()
    names = []
    sent = (datetime.datetime.now(datetime.UTC)).isoformat()
    with tempfile.TemporaryDirectory() as held:
        folders = [
            make_run(
                Path(held, str(number)),
                dataset,
                model={"id": f"org-{number}/model-{number}"},
                skill=0.3 + 0.6 * (number % 97) / 97,
                seed=number,
                sent=sent,
            )
            for number in numbers
        ]
        scoring.score_runs(
            [runs.read_run(one) for one in folders],
            dataset,
            open_metrics.wanted("bleu,rouge,citations"),
        )
        for number, one in zip(numbers, folders, strict=True):
            declared = submitting.Declaration(f"user{number}", "none_known")
            raw = (one / "predictions.jsonl").read_bytes()
            run = runs.read_run(one)
            today = datetime.datetime.now(datetime.UTC).date()
            manifest = submitting.manifest_of(run, raw, declared, today)
            manifest["run"]["started_at"] = None
            manifest["slug"] = entries.slug_of(manifest)
            target = folder / manifest["slug"]
            target.mkdir()
            runs.write_json(target / entries.MANIFEST, manifest)
            runs.write_bytes(target / entries.PREDICTIONS, entries.pack(raw))
            names.append(target.name)
    return names


if __name__ == "__main__":
    main()
