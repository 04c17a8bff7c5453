"""Sending: each call to a hosted model is answered once, or known to have failed.

One retry layer, by error class, with a deadline over all tries of a call. A call is sent only if
its provider's pace and the budget allow it.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hk_fs_bench.api_budget import Budget, Stopped
from hk_fs_bench.api_errors import Failure
from hk_fs_bench.api_http import Connection
from hk_fs_bench.api_pace import Pace
from hk_fs_bench.providers import Reply, read_reply

if TYPE_CHECKING:
    from hk_fs_bench.api_models import Model, Price, Provider

# Tries of one call that fail for another reason than a rate limit, which only the deadline ends.
TRIES = 8
# The same while a model was never reached: the address is more likely wrong than out of order.
TRIES_UNSEEN = 3
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
# One and the same limit, old and new.
OTHER_NAME = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
# The service may have answered, and will want its money.
LOST = ("timeout", "connection", "bad_body", "stream_cut")
# Calls in a row that failed for good before a model is given up.
GIVE_UP = 20
GIVE_UP_UNSEEN = 3


@dataclass
class Answer:
    """What became of one call: status `ok`, `no_answer` or `infra_error`.

    `latency_ms` is the answering request alone, without queue and back-off. `in_flight` counts the
    provider's calls when it was sent, this one included. `detail` is a line for people.
    """

    sent_at: str
    in_flight: int
    attempt: int = 1
    status: str = "infra_error"
    cause: str | None = None
    reply: Reply | None = None
    latency_ms: float | None = None
    detail: str | None = None
    failure: Failure | None = None


@dataclass
class Account:
    """What the models of one provider share: address, key and pace."""

    provider: Provider
    base_url: str
    key: str
    pace: Pace
    sessions: list[Session] = field(default_factory=list)


class Session:
    """The calls to one model. Use `async with`, inside one event loop."""

    def __init__(
        self,
        model: Model,
        account: Account,
        budget: Budget | None = None,
        price: Price | None = None,
    ) -> None:
        self.model = model
        self.account = account
        self.budget = budget or Budget()
        self.price = price
        self.stopped: str | None = None
        self.answered = 0
        # What went wrong last, while nothing has gone well since.
        self.trouble: str | None = None
        # USD that replies may have cost at most which were lost on the way.
        self.lost_usd = 0.0
        # Fields that the server refused and that are not sent again: name → why.
        self.dropped: dict[str, str] = {}
        # Limits that the server wants under their other name: name → that name.
        self._renamed: dict[str, str] = {}
        self._failed_in_a_row = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sending: set[asyncio.Task[Any]] = set()
        account.sessions.append(self)

    async def __aenter__(self) -> Session:
        self._connection = Connection(self.account.base_url, self.account.key)
        await self._connection.__aenter__()
        return self

    async def __aexit__(self, *exit: Any) -> None:
        await self._connection.__aexit__(*exit)

    @property
    def sending(self) -> int:
        """Calls of this model in flight."""
        return len(self._sending)

    def stop(self, why: str) -> None:
        """Send nothing more; what is in flight may end."""
        self.stopped = self.stopped or why
        for task in self._tasks - self._sending - {asyncio.current_task()}:
            task.cancel()

    def abort(self) -> None:
        """Give up what is in flight, too."""
        for task in set(self._tasks):
            task.cancel()

    async def ask(
        self, body: Mapping[str, Any], *, most: float = 0.0, droppable: Collection[str] = ()
    ) -> Answer:
        """Send one request until it is answered, fails for good, or its deadline passes.

        Args:
            body: the request, as `providers.payload` makes it.
            most: what one try may cost at most, in USD.
            droppable: fields that may be left out if the server refuses them.

        Raises:
            Stopped: no call is sent for this model any more.
        """
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await self._until_settled(task, dict(body), most, droppable)
        except asyncio.CancelledError:
            if self.stopped is None:
                raise
            task.uncancel()
            raise Stopped(self.stopped) from None
        except Stopped as stop:
            self.stop(str(stop))
            raise
        finally:
            self._tasks.discard(task)

    async def _until_settled(
        self,
        task: asyncio.Task[Any],
        body: dict[str, Any],
        most: float,
        droppable: Collection[str],
    ) -> Answer:
        loop = asyncio.get_running_loop()
        deadline = None
        attempt = failures = faults = 0
        while True:
            if self.stopped is not None:
                raise Stopped(self.stopped)
            slot = await self.account.pace.slot(again=attempt > 0)
            # Not before: another call may have learnt it while this one waited.
            for old, new in self._renamed.items():
                if old in body:
                    body[new] = body.pop(old)
            for name in self.dropped:
                body.pop(name, None)
            attempt += 1
            deadline = deadline or loop.time() + self.model.deadline_s
            left = max(1.0, deadline - loop.time())
            try:
                answer = await self._try(task, body, most, min(left, self.model.timeout_s))
            except BaseException:
                self.account.pace.failed()
                raise
            answer.attempt, answer.in_flight = attempt, slot.in_flight
            failure = answer.failure
            if failure is None:
                self.account.pace.served(slot)
                self.answered += 1
                self.trouble = None
                self._failed_in_a_row = 0
                return answer
            self.trouble = str(failure)
            overloaded = failure.action == "overloaded"
            if overloaded:
                self.account.pace.refused(slot, failure.wait)
            else:
                self.account.pace.failed()
            if failure.action == "filtered":
                answer.status = "no_answer"
                return answer
            if failure.action == "drop_parameter" and self._mend(body, failure, droppable):
                continue
            self._consider_stopping(failure)
            failures += 1
            faults += failure.cause != "http_429"
            wait = self._wait(failure, failures)
            passing = failure.action in ("retry", "overloaded")
            tries = TRIES if self.answered else TRIES_UNSEEN
            if not passing or faults >= tries or loop.time() + wait >= deadline:
                self._count_failure(answer)
                return answer
            await asyncio.sleep(wait)

    async def _try(
        self, task: asyncio.Task[Any], body: dict[str, Any], most: float, timeout: float
    ) -> Answer:
        """Send once. A Failure becomes part of the Answer."""
        async with self.budget.hold(most) as pay:
            self._sending.add(task)
            sent = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            answer = Answer(sent, 0)
            begun = time.perf_counter()
            try:
                raw = await self._connection.post(body, timeout, self.account.provider)
                reply = read_reply(raw, self.account.provider)
                answer.latency_ms = round((time.perf_counter() - begun) * 1000, 1)
                answer.reply = reply
                answer.status, answer.cause = reply.outcome
                pay(self.price.cost(reply.usage) if self.price else 0.0)
            except Failure as failure:
                answer.failure, answer.cause = failure, failure.cause
                answer.detail = failure.message
                if self.price and failure.cause in LOST:
                    pay(None)
                    self.lost_usd += most
            finally:
                self._sending.discard(task)
        return answer

    def _mend(self, body: dict[str, Any], failure: Failure, droppable: Collection[str]) -> bool:
        """Take the refused field out of this and all later requests, or send the limit under its
        other name; whether that could be done."""
        name = failure.parameter or ""
        other = OTHER_NAME.get(name)
        if other is not None and name in body and name not in self._renamed.values():
            self._renamed[name] = other
            self.dropped[name] = f"sent as {other}; the server refused it: {failure.message}"
            return True
        if name not in droppable or body.pop(name, None) is None:
            return False
        self.dropped[name] = f"the server refused it: {failure.message}"
        return True

    def _consider_stopping(self, failure: Failure) -> None:
        """Raise Stopped where no further call can help; an account stops all of its models."""
        action, why = failure.action, f"{failure.cause}: {failure.message}"
        if action == "overloaded" and failure.wait and failure.wait > self.model.deadline_s:
            action, why = "stop_provider", f"the service asks to wait {failure.wait:.6g} s: {why}"
        if action in ("rejected", "drop_parameter") and not self.answered:
            # Later, when the like of it was answered, it is this one request's own fault.
            action = "stop_model"
        if action == "stop_provider":
            for session in self.account.sessions:
                session.stop(why)
        elif action == "stop_model":
            self.stop(why)
        if self.stopped is not None:
            raise Stopped(self.stopped)

    def _count_failure(self, answer: Answer) -> None:
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= (GIVE_UP if self.answered else GIVE_UP_UNSEEN):
            self.stop(
                f"{self._failed_in_a_row} calls in a row failed, the last with {answer.cause}: "
                f"{answer.detail}"
            )

    def _wait(self, failure: Failure, failures: int) -> float:
        """Seconds until the next try: what the service asked for, else doubling, with jitter."""
        jitter = random.uniform(0.5, 1.0)
        own = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 10)) * jitter
        if failure.wait is None:
            return own
        # Some ask for no wait at all, again and again: asked for less than a second, ours grows.
        return max(failure.wait + 0.1 * jitter, own if failure.wait < 1 else 0.0)
