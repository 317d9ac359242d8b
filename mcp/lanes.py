"""The worker threads, and the only place that knows threads: one lane for fast tools, a small pool for slow ones.

Each thread keeps its own database connection. `docs/perf.md` says how the lanes may be made faster later.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from django.conf import settings
from django.db import close_old_connections, connections

T = TypeVar("T")
log = logging.getLogger(__name__)
SLOW_THREADS = 8
_pools: dict[str, ThreadPoolExecutor] = {}


def pool(name: str) -> ThreadPoolExecutor:
    """The lane's threads, started on first use. PostgreSQL gains from a second fast thread, SQLite loses."""
    if name not in _pools:
        size = SLOW_THREADS if name == "slow" else (1 if settings.ON_SQLITE else 2)
        _pools[name] = ThreadPoolExecutor(size, thread_name_prefix=f"lane-{name}")
    return _pools[name]


async def run(function: Callable[[], T], *, slow: bool = False) -> T:
    """Run `function` in a lane and wait for it; nothing returns to the loop before it has committed."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool("slow" if slow else "fast"), guarded, function)


def guarded(function: Callable[[], T]) -> T:
    """A broken connection is closed afterwards, so that the next call gets a new one."""
    try:
        return function()
    finally:
        close_old_connections()


def stop() -> None:
    """Finish what runs, then end the threads and their connections."""
    for lane in _pools.values():
        for _ in range(lane._max_workers):
            with suppress(RuntimeError):
                lane.submit(connections.close_all)
        lane.shutdown(wait=True)
    _pools.clear()
