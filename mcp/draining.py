"""The end of a web process: what has begun is answered, what has not is not begun."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp.inflight import inflight
from mcp.parking import park

TICK = 0.02
LAST_CALL = 0.5  # seconds for what was taken back at the end to come home


@dataclass(slots=True)
class State:
    """Whether the process ends, and how many messages are in progress."""

    draining: bool = False
    running: int = 0


_state = State()


def now() -> bool:
    """Whether this process takes no new messages."""
    return _state.draining


@contextmanager
def work() -> Iterator[None]:
    """A message in progress, until its answer was sent."""
    _state.running += 1
    try:
        yield
    finally:
        _state.running -= 1


async def drain(seconds: float) -> None:
    """Take nothing new and wait until the rest is answered, at most `seconds`. Parked calls end as pending.

    What is not done by then is taken back: its effect is rolled back and it gets no answer.
    """
    _state.draining = True
    park.wake_all()
    if not await quiet(seconds - LAST_CALL):
        inflight.cancel_all()
        await quiet(LAST_CALL)


async def quiet(seconds: float) -> bool:
    """True once nothing runs."""
    deadline = time.monotonic() + seconds
    while _state.running > 0:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(TICK)
    return True


def reset() -> None:
    """Take messages: a web process starts."""
    _state.draining = False
