"""Asking hosted models: every wanted call once, every answer into its run folder as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hk_fs_bench import api_manifest, runs
from hk_fs_bench.api_budget import Budget, Stopped
from hk_fs_bench.api_keys import NO_KEY, find_key, hide
from hk_fs_bench.api_pace import Pace
from hk_fs_bench.api_plan import Job, Request
from hk_fs_bench.api_rows import row_of
from hk_fs_bench.client import Account, Answer, Session
from hk_fs_bench.errors import UserError

INTERRUPTED = "stopped by Ctrl-C"


@dataclass
class Going:
    """A job under way: its log, its session, and what came of it so far."""

    job: Job
    log: runs.PredictionLog
    session: Session
    keys: tuple[str, ...]
    started: float = field(default_factory=time.monotonic)
    asked: int = 0
    answered: int = 0
    failed: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    # What was last said of each cause.
    details: dict[str, str] = field(default_factory=dict)
    # Failures before the first answer: a service that was never seen to answer has failed no item.
    unseen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None before the first answer."""
        if not self.answered:
            return None
        left = self.asked - self.answered - self.failed
        return (time.monotonic() - self.started) / self.answered * left

    def record(self, request: Request, answer: Answer) -> None:
        """Append the row of an answer."""
        row = row_of(self.job, request, answer, self.keys)
        if not runs.settled(row):
            self.failed += 1
            self.causes[row["cause"]] = self.causes.get(row["cause"], 0) + 1
            self.details[row["cause"]] = row["detail"] or ""
            if not self.session.answered:
                self.unseen.append(row)
                return
        else:
            self.answered += 1
            self.job.done += 1
            self.job.count(request, row["token_usage"])
        for earlier in [*self.unseen, row]:
            self.log.append(earlier)
        self.unseen.clear()
        name = row["returned_model"]
        known = self.job.manifest["model"]["returned_ids"]
        if name is not None and name not in known:
            known.append(name)


def accounts_of(jobs: Sequence[Job], max_concurrency: int | None = None) -> dict[str, Account]:
    """One account a provider and address, with its key.

    Raises:
        UserError: a key that is missing; the message names its variable.
    """
    accounts: dict[str, Account] = {}
    for job in jobs:
        name = _account_name(job)
        if name in accounts:
            continue
        key = find_key(job.provider)
        if key is None and job.provider.key_required:
            raise UserError(
                f"{job.name} needs the key of {job.model.provider}: set {job.provider.key} in the "
                "environment, or put it into a file .env here"
            )
        speed = job.provider.concurrency
        ceiling = speed.max if max_concurrency is None else min(max_concurrency, speed.max)
        accounts[name] = Account(
            job.provider, job.base_url, key or NO_KEY, Pace(speed.start, ceiling)
        )
    return accounts


def _account_name(job: Job) -> str:
    return f"{job.model.provider} {job.base_url}"


async def run(
    jobs: Sequence[Job],
    *,
    max_cost: float | None = None,
    max_concurrency: int | None = None,
    watch: Callable[[Sequence[Going]], Awaitable[None]] | None = None,
) -> list[Going]:
    """Ask everything that is still to be asked.

    Ctrl-C and SIGTERM let the calls in flight end; a second one gives them up. However the run
    ends, the manifests say how.

    Args:
        max_cost: USD for all jobs together, with what their folders cost already.
        max_concurrency: calls in flight at one provider, at most.
        watch: runs beside the calls, for a progress display; it is cancelled at the end.

    Raises:
        UserError: a missing key, a price that `max_cost` needs, a folder in use or not writable.
    """
    if max_cost is not None and (unknown := [job.name for job in jobs if job.price is None]):
        raise UserError(
            f"--max-cost needs a price, and models.yaml has none for {', '.join(unknown)}; give it "
            "with --price IN/OUT (USD per million tokens), one model at a time"
        )
    accounts = accounts_of(jobs, max_concurrency)
    keys = tuple(account.key for account in accounts.values())
    budget = Budget(max_cost)
    going: list[Going] = []
    async with contextlib.AsyncExitStack() as stack:
        try:
            for job in jobs:
                account = accounts[_account_name(job)]
                log = stack.enter_context(runs.PredictionLog(job.folder))
                session = Session(job.model, account, budget, job.price)
                await stack.enter_async_context(session)
                going.append(_begin(job, log, session, keys))
            budget.spent = sum(job.usd + job.usd_most for job in jobs)
            with _signals(going), _light_collection():
                await _ask_all(going, watch)
        finally:
            _finish_all(going)
    return going


def _begin(job: Job, log: runs.PredictionLog, session: Session, keys: tuple[str, ...]) -> Going:
    """Write down that a session begins."""
    # Once more, now that nobody else writes: another process may have gone on meanwhile.
    job.read_folder()
    known = _not_applied(job)
    session.dropped.update({name: why for name, why in known.items() if name in job.sampling})
    job.manifest["started_at"] = job.manifest["started_at"] or api_manifest.now()
    job.manifest["sessions"].append({"started_at": api_manifest.now(), "ended_at": None})
    _save(job)
    return Going(job, log, session, keys, asked=len(job.todo))


async def _ask_all(
    going: Sequence[Going], watch: Callable[[Sequence[Going]], Awaitable[None]] | None
) -> None:
    watcher = asyncio.ensure_future(watch(going)) if watch else None
    try:
        async with asyncio.TaskGroup() as group:
            for one in going:
                for request in one.job.todo:
                    group.create_task(_settle(one, request))
    except BaseExceptionGroup as faults:
        mistakes, others = faults.split(UserError)
        raise others or (mistakes or faults).exceptions[0] from None
    finally:
        if watcher is not None:
            watcher.cancel()
            # A display that failed, as on a closed terminal, is no fault of the run.
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await watcher


async def _settle(going: Going, request: Request) -> None:
    job = going.job
    try:
        answer = await going.session.ask(
            request.body, most=job.most(request), droppable=job.sampling
        )
    except Stopped:
        return
    going.record(request, answer)


def _not_applied(job: Job) -> dict[str, str]:
    known: dict[str, str] = job.manifest["protocol"]["parameters_not_applied"]
    return known


def _finish_all(going: Sequence[Going]) -> None:
    """Write how every session ended; one that can't be written keeps no other from it."""
    faults = []
    for one in going:
        try:
            _finish(one)
        except UserError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]


def _finish(going: Going) -> None:
    """Write how the session ended."""
    job, session = going.job, going.session
    dropped = {name: hide(why, going.keys) for name, why in session.dropped.items()}
    _not_applied(job).update(dropped)
    job.manifest["sessions"][-1] |= {
        "ended_at": api_manifest.now(),
        "seconds": round(time.monotonic() - going.started, 1),
        "answered": going.answered,
        "failed": going.failed - len(going.unseen),
        "lost_usd_most": session.lost_usd,
    }
    job.manifest["stopped"] = hide(session.stopped, going.keys) if session.stopped else None
    job.manifest["complete"] = _complete(job)
    _save(job)


def _complete(job: Job) -> bool:
    """Whether all that was ever planned in the folder is answered."""
    rows = runs.read_run(job.folder).rows.values()
    answered = Counter(row["task"] for row in rows if runs.settled(row))
    planned: dict[str, int] = job.manifest["planned"]
    return all(answered[task] >= n for task, n in planned.items())


def _save(job: Job) -> None:
    runs.write_json(job.folder / "run.json", job.manifest)


@contextlib.contextmanager
def _light_collection() -> Iterator[None]:
    """Spare the garbage collector what is loaded: looking through all of it stops every call for a
    tenth of a second, which would count as their latency."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextlib.contextmanager
def _signals(going: Sequence[Going]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run in good order, the second time at once."""
    loop = asyncio.get_running_loop()
    seen = []

    def stop() -> None:
        seen.append(1)
        for one in going:
            one.session.stop(INTERRUPTED)
            if len(seen) > 1:
                one.session.abort()

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
    except (NotImplementedError, RuntimeError, ValueError):
        pass  # Not in this thread, or not on this system: Ctrl-C then ends the run at once.
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
