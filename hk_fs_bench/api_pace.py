"""How many calls may be in flight at one provider: found by trying, with no setting to guess.

Slow start, then additive rise; every refusal for overload cuts. A refusal while n other calls are
being served says that n is what the service bears, so the limit falls to n at once. A call that was
sent at a limit already cut and is refused all the same says that it is not the number in flight but
the rate: then the limit falls by a fifth, and after three such refusals all sending rests, for as
long as the service asked, or ever longer where it asked for nothing. A wait that the service asks
of one call never stops the others longer than `LONGEST_REST_S`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

CUT = 0.8
# After a cut the limit stands this long before it rises again.
SETTLE_S = 5.0
LONGEST_REST_S = 60.0
STRIKES = 3


@dataclass
class Slot:
    """Permission to send one call: how many are in flight with it, and under which limit."""

    in_flight: int
    cuts: int


class Pace:
    """The calls in flight at one provider. Use within one event loop."""

    def __init__(self, start: int, ceiling: int) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(min(max(1, start), self.ceiling))
        self.in_flight = 0
        self._cuts = 0
        self._strikes = 0
        self._last_cut = -SETTLE_S
        self._rest_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    async def slot(self, *, again: bool = False) -> Slot:
        """Wait for permission to send; a call that is sent again goes first."""
        if self._waiting or not self._free():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.appendleft(turn) if again else self._waiting.append(turn)
            self._wake()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()
                elif turn in self._waiting:
                    self._waiting.remove(turn)
                raise
        else:
            self.in_flight += 1
        return Slot(self.in_flight, self._cuts)

    def served(self, slot: Slot) -> None:
        """A call was answered."""
        if slot.cuts == self._cuts:
            self._strikes = 0
        # Only a limit that was reached tells anything about a higher one.
        if self.in_flight >= 0.8 * self.limit:
            if not self._cuts:
                self.limit += 1
            elif asyncio.get_running_loop().time() > self._last_cut + SETTLE_S:
                self.limit += 1 / self.limit
            self.limit = min(self.limit, float(self.ceiling))
        self._leave()

    def refused(self, slot: Slot, wait: float | None) -> None:
        """A call was refused for overload; `wait` is what the service asked for."""
        now = asyncio.get_running_loop().time()
        others = self.in_flight - 1
        if slot.cuts == self._cuts:
            self._cuts += 1
            self._strikes += 1
            self._last_cut = now
            target = self.limit * CUT if self._strikes > 1 else self.limit
            if self._strikes >= STRIKES or not others:
                rest = 2.0 ** min(self._strikes - 1, 10) if wait is None else wait
                self._rest_until = max(self._rest_until, now + min(rest, LONGEST_REST_S))
        else:
            target = self.limit
        self.limit = max(1.0, min(target, float(others) if others else target * CUT))
        self._leave()

    def failed(self) -> None:
        """A call ended in another way, which says nothing about the load."""
        self._leave()

    def _free(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self.in_flight < max(1, int(self.limit)) and now >= self._rest_until

    def _leave(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._free():
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
        loop = asyncio.get_running_loop()
        if self._waiting and loop.time() < self._rest_until and self._alarm is None:
            self._alarm = loop.call_at(self._rest_until, self._rested)

    def _rested(self) -> None:
        self._alarm = None
        self._wake()
