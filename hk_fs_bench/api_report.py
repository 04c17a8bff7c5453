"""Hosted runs as tables for people: what will run, how it is going, what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hk_fs_bench.api_keys import hide

if TYPE_CHECKING:
    from rich.table import Table

    from hk_fs_bench.api_plan import Job
    from hk_fs_bench.api_runs import Going


# Columns that the table needs with every cell in one line.
WIDE = 130


def plan_table(jobs: Sequence[Job], keys: Mapping[str, bool], width: int = WIDE) -> Table:
    """What will be asked, and what it will take.

    Args:
        keys: whose key is at hand.
        width: columns of the terminal; below `WIDE`, cells stand below one another.
    """
    from rich.table import Table
    from rich.text import Text

    wide = width >= WIDE
    both = " / " if wide else "\n"
    table = Table(title="To be asked; tokens and USD: expected / at most")
    table.add_column("configuration", overflow="fold")
    if wide:
        table.add_column("id at the service", overflow="fold")
        for column in ("thinking", "search", "key"):
            table.add_column(column)
    for column in ("calls", "done", "failed", "tokens in", "tokens out", "USD"):
        table.add_column(column, justify="right", no_wrap=True)
    for job in jobs:
        e = job.estimate()
        requested = job.manifest["model"]["requested_id"]
        key = "yes" if keys[job.name] else "none needed" if not job.provider.key_required else "NO"
        said = {"thinking": job.model.thinking.mode, "search": job.model.search.label, "key": key}
        who = [job.name, requested, *said.values()]
        if not wide:
            names = list(dict.fromkeys((job.name, requested)))
            who = ["\n".join([*names, *(f"{name} {value}" for name, value in said.items())])]
        # A name is text, whatever brackets it holds.
        table.add_row(
            *map(Text, who),
            f"{len(job.todo):,}",
            f"{job.done:,}",
            f"{job.failed:,}",
            f"{e.tokens_in:,}",
            f"{_known(e.tokens_out)}{both}{e.tokens_out_most:,}",
            f"{_usd(e.usd)}{both}{_usd(e.usd_most)}",
            end_section=not wide,
        )
    return table


def plan_notes(jobs: Sequence[Job]) -> list[str]:
    """What a reader of the plan has to know."""
    lines = []
    for job in jobs:
        for name, why in job.manifest["protocol"]["parameters_not_applied"].items():
            lines.append(f"{job.name}: {name} is not applied ({why})")
        if job.model.search.label != "off":
            lines.append(
                f"{job.name}: search {job.model.search.label}; the questions and keys are public, "
                "so a model that searches can find them, and the run is labelled"
            )
        if job.failed and not job.retry_failures:
            lines.append(
                f"{job.name}: {job.failed} failed before; --retry-failures asks them again"
            )
    if unknown := [job.name for job in jobs if job.price is None]:
        lines.append(f"no price is known for {', '.join(unknown)}; --price IN/OUT gives one")
    expected = "the paper's mean tokens a question" if any(j.model.paper for j in jobs) else ""
    if expected:
        lines.append(f"expected: {expected}; at most: every call to its limit.")
    return lines


def payloads(jobs: Sequence[Job]) -> Iterator[str]:
    """The first request of every task and configuration, as it would be sent."""
    for job in jobs:
        seen = set()
        for request in job.requests:
            if request.key[0] not in seen:
                seen.add(request.key[0])
                yield f"{job.name} → {job.base_url.rstrip('/')}/chat/completions"
                yield json.dumps(request.body, ensure_ascii=False, indent=2)


def state(going: Sequence[Going]) -> str:
    """One line on how it goes, with what stands in the way."""
    done, failed = sum(g.answered for g in going), sum(g.failed for g in going)
    times = [left for g in going if (left := g.seconds_left) is not None]
    parts = [
        f"{done:,}/{sum(g.asked for g in going):,} done",
        f"{failed:,} failed",
        f"{sum(g.session.sending for g in going)} in flight",
        *([f"{_clock(max(times))} left"] if times else []),
        *(hide(g.session.trouble, g.keys) for g in going if g.session.trouble),
        f"{sum(g.job.usd for g in going):.4f} USD",
        f"{sum(g.job.tokens for g in going):,} tokens",
    ]
    return " · ".join(parts)


def outcome(going: Sequence[Going]) -> list[str]:
    """What came of each run, and what to do next."""
    lines = []
    for g in going:
        job = g.job
        line = f"{job.name}: {job.done} of {len(job.requests)} answered"
        line += f", {g.failed} failed now" if g.failed else ""
        line += "" if job.price is None else f", {job.usd:.4f} USD"
        if unknown := job.usd_most + g.session.lost_usd:
            line += f" and up to {unknown:.4f} for replies whose tokens are not known"
        lines.append(line)
        for cause, n in sorted(g.causes.items()):
            said = g.details[cause]
            lines.append(f"  failed: {cause} {n}" + (f" ({said})" if said else ""))
        if job.manifest["stopped"]:
            lines.append(f"  stopped: {job.manifest['stopped']}")
        if job.manifest["complete"]:
            lines.append(f"  complete: python scripts/score.py {job.folder}")
        elif job.complete:
            lines.append(
                f"  all of this command is answered, but {job.folder} was begun with more; that "
                "command again asks the rest"
            )
        else:
            recorded = job.failed or g.failed > len(g.unseen)
            retry = " with --retry-failures" if recorded else ""
            lines.append(f"  incomplete: the same command again{retry} asks the rest")
    return lines


def _known(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _usd(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
