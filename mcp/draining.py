"""The end of a web process: what has begun is answered, what has not is not begun."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.parking import park

_state = {"draining": False, "running": 0}
TICK = 0.02


def now() -> bool:
    """Whether this process takes no new messages."""
    return _state["draining"]


@contextmanager
def work() -> Iterator[None]:
    """A message in progress, until its answer was sent."""
    _state["running"] += 1
    try:
        yield
    finally:
        _state["running"] -= 1


async def drain(seconds: float) -> None:
    """Take nothing new and wait until the rest is answered, at most `seconds`. Parked calls end as pending."""
    _state["draining"] = True
    park.wake_all()
    deadline = time.monotonic() + seconds
    while _state["running"] > 0 and time.monotonic() < deadline:
        await asyncio.sleep(TICK)


def reset() -> None:
    """Take messages again (tests)."""
    _state["draining"] = False
