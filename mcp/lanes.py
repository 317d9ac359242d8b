"""The worker threads, and the only place that knows threads.

Three lanes, each with database connections of its own: `fast` for the short work of a message, `slow` for
tools marked so, `push` for looking after open streams, so that a revocation never queues behind a call.
`docs/perf.md` says how the lanes may be made faster later.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Literal, TypeVar

from django.conf import settings
from django.db import close_old_connections, connections

T = TypeVar("T")
Lane = Literal["fast", "slow", "push"]
SLOW_THREADS = 8
GATHER = 5.0  # seconds that threads get to meet at the end
_pools: dict[str, ThreadPoolExecutor] = {}


def size(lane: Lane) -> int:
    """PostgreSQL gains from a second fast thread, SQLite loses."""
    if lane == "fast":
        return 1 if settings.ON_SQLITE else 2
    return SLOW_THREADS if lane == "slow" else 1


def pool(lane: Lane) -> ThreadPoolExecutor:
    """The lane's threads, started on first use."""
    if lane not in _pools:
        _pools[lane] = ThreadPoolExecutor(size(lane), thread_name_prefix=f"lane-{lane}")
    return _pools[lane]


async def run(function: Callable[[], T], lane: Lane = "fast") -> T:
    """Run `function` in a lane and wait for it; nothing returns to the loop before it has committed."""
    return await asyncio.get_running_loop().run_in_executor(pool(lane), guarded, function)


def guarded(function: Callable[[], T]) -> T:
    """A broken connection is closed afterwards, so that the next call gets a new one."""
    try:
        return function()
    finally:
        close_old_connections()


def stop() -> None:
    """Finish what runs, then end the threads and their connections."""
    for lane in _pools.values():
        meeting = threading.Barrier(lane._max_workers)
        for _ in range(lane._max_workers):
            lane.submit(close_here, meeting)
        lane.shutdown(wait=True)
    _pools.clear()


def close_here(meeting: threading.Barrier) -> None:
    """Close this thread's connections; the barrier keeps one thread from doing it for all."""
    with suppress(threading.BrokenBarrierError):
        meeting.wait(GATHER)
    connections.close_all()
