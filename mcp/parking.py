"""Calls that wait for a row to be decided. They hold no thread: a future each, one SELECT for all of them."""

import asyncio
import logging
from collections import defaultdict
from datetime import datetime
from functools import partial

from agents.models import Approval
from duduclaw.lib import clock
from duduclaw.lib.outage import Outage
from mcp import lanes

SWEEP = 2.0  # seconds between looks at the rows
PER_KEY, PER_PROCESS = 10, 1_000
PATIENCE = 45.0  # seconds that a call without a progress token waits
trouble = Outage(logging.getLogger(__name__), "the look at parked calls")


class Park:
    """The parked calls of this process."""

    def __init__(self) -> None:
        self.waiting: dict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self.per_key: dict[str, int] = defaultdict(int)
        self.sweeper: asyncio.Task[None] | None = None

    def full(self, key: str) -> bool:
        """Whether this key, or the process, has no place left."""
        return self.per_key.get(key, 0) >= PER_KEY or sum(self.per_key.values()) >= PER_PROCESS

    async def wait(self, row: str, key: str, seconds: float) -> bool:
        """True when the row was decided within `seconds`; False at once when there is no place left."""
        if self.full(key):
            return False
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[row].add(future)
        self.per_key[key] += 1
        self.start()
        try:
            await asyncio.wait_for(future, seconds)
            return True
        except TimeoutError:
            return False
        finally:
            self.leave(row, key, future)

    def leave(self, row: str, key: str, future: "asyncio.Future[None]") -> None:
        """Give the place back."""
        self.waiting[row].discard(future)
        if not self.waiting[row]:
            del self.waiting[row]
        self.per_key[key] -= 1
        if not self.per_key[key]:
            del self.per_key[key]

    def wake(self, row: str) -> None:
        """The row was decided, says an event or the sweep."""
        for future in list(self.waiting.get(row, ())):
            if not future.done():
                future.set_result(None)

    def wake_all(self) -> None:
        """The process ends: nobody waits any longer."""
        for row in list(self.waiting):
            self.wake(row)

    def start(self) -> None:
        """Keep one sweeper a loop while anybody waits."""
        loop = asyncio.get_running_loop()
        if self.sweeper is None or self.sweeper.done() or self.sweeper.get_loop() is not loop:
            self.sweeper = loop.create_task(self.sweep(), name="parking-sweep")

    async def sweep(self) -> None:
        """A lost event costs two seconds."""
        while self.waiting:
            await asyncio.sleep(SWEEP)
            try:
                for row in await lanes.run(partial(decided, list(self.waiting)), "push"):
                    self.wake(row)
                trouble.ended()
            except Exception as error:
                trouble.began(error)


def decided(rows: list[str]) -> list[str]:
    """Those of the rows that no longer wait."""
    still = Approval.objects.system().filter(pk__in=rows).open(clock.now()).values_list("pk", flat=True)
    return sorted(set(rows) - set(still))


def seconds_left(until: datetime) -> float:
    """From now to `until`, never negative."""
    return max(0.0, (until - clock.now()).total_seconds())


park = Park()
