"""Ask hosted models the questions: every answer paid for once, and the same command goes on.

    python api_runners/run.py MODEL... [--tasks hk_fs] [--regime paper] [--limit N] [--dry-run]

MODEL is an entry of api_runners/models.yaml; without any, they are listed. Answers go into one run
folder a model, which scripts/score.py scores.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench import commands
from hk_fs_bench.errors import UserError, run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hk_fs_bench.api_runs import Going

HERE = Path(__file__).resolve().parent


def main() -> int:
    args = commands.parse(__file__, globals())
    from rich.console import Console

    from hk_fs_bench import api_keys, api_models, api_plan, api_report, api_runs, items

    registry = api_models.load(args.models_file or HERE / "models.yaml")
    names = list(dict.fromkeys(args.models))
    if not names:
        raise UserError(f"name at least one model; there are {', '.join(registry.models)}")
    if len(names) > 1 and (args.price or args.id or args.base_url or args.model_id):
        raise UserError("--price, --id, --base-url and --model-id are for one model at a time")
    dataset = items.load(args.dataset, args.revision)
    jobs = [
        api_plan.plan(
            registry,
            name,
            dataset,
            tasks=args.tasks.replace(",", " ").split(),
            regime=args.regime,
            out=args.out,
            samples=args.samples,
            limit=args.limit,
            service_id=args.id,
            base_url=args.base_url,
            model_id=args.model_id,
            price=api_models.check_price(args.price) if args.price else None,
            retry_failures=args.retry_failures,
        )
        for name in names
    ]
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=True)
    keys = {job.name: api_keys.find_key(job.provider) is not None for job in jobs}
    console.print(api_report.plan_table(jobs, keys, console.width))
    lines: list[str] = api_report.plan_notes(jobs)
    if args.show_payloads:
        lines += api_report.payloads(jobs)
    for line in lines:
        console.print(line, markup=False, highlight=False)
    if args.dry_run:
        return 0
    going = asyncio.run(
        api_runs.run(jobs, max_cost=args.max_cost, max_concurrency=args.max_concurrency, watch=show)
    )
    for line in api_report.outcome(going):
        console.print(line, markup=False, highlight=False)
    if any(job.manifest["stopped"] == api_runs.INTERRUPTED for job in jobs):
        return 130
    return 0 if all(job.complete for job in jobs) else 1


async def show(going: Sequence[Going]) -> None:
    """A progress bar on the terminal; in a file or a pipe, a line a minute."""
    from rich.progress import BarColumn, Progress, TextColumn

    from hk_fs_bench import api_report

    total = sum(g.asked for g in going)
    columns: list[Any] = [BarColumn(bar_width=8), TextColumn("{task.description}")]
    if not sys.stderr.isatty():
        while True:
            await asyncio.sleep(60)
            print(api_report.state(going), file=sys.stderr, flush=True)
    from rich.console import Console

    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=total)
        while True:
            done = sum(g.answered + g.failed for g in going)
            progress.update(bar, completed=done, description=api_report.state(going))
            await asyncio.sleep(0.25)


if __name__ == "__main__":
    run_command(main)
