"""Money: what a command may spend, has spent, and holds back for calls in flight."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field


class Stopped(Exception):
    """No further call is sent for a model; the text says why."""


@dataclass
class Budget:
    """USD. `limit` None is no limit; `spent` may begin with what earlier commands paid."""

    limit: float | None = None
    spent: float = 0.0
    _held: list[float] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def hold(self, most: float) -> AsyncIterator[Callable[[float | None], None]]:
        """Hold back what a call may cost at most while it is in flight.

        Yields:
            A function to call with what it did cost; None, unknown, counts as the most.

        Raises:
            Stopped: the call might pass the limit, and nothing is in flight of which something
                could come back.
        """
        while self.limit is not None and self.spent + sum(self._held) + most > self.limit:
            if not self._held:
                raise Stopped(
                    f"the next call may cost {most:.4f} USD, and {self.spent:.4f} of the "
                    f"{self.limit:.4f} USD of --max-cost are spent"
                )
            self._changed.clear()
            await self._changed.wait()
        self._held.append(most)
        paid: list[float] = []
        try:
            yield lambda cost: paid.append(most if cost is None else cost)
        finally:
            self._held.remove(most)
            self.spent += sum(paid)
            self._changed.set()
