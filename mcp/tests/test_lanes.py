"""The worker threads: lanes do not wait for each other, and at the end no thread and no connection is left."""

import asyncio
import threading
from typing import Any

import pytest
from django.db import connection, connections

from mcp import lanes
from tests.stack import WATCHDOG


@pytest.mark.asyncio
async def test_a_stuck_lane_holds_up_no_other() -> None:
    door = threading.Event()
    stuck = asyncio.ensure_future(lanes.run(lambda: door.wait(WATCHDOG), "fast"))
    assert await lanes.run(lambda: 1, "slow") == 1
    assert await lanes.run(lambda: 2, "push") == 2
    door.set()
    assert await stuck is True
    lanes.stop()


@pytest.mark.asyncio
async def test_slow_calls_overlap() -> None:
    meeting = threading.Barrier(lanes.SLOW_THREADS)
    await asyncio.gather(*(lanes.run(lambda: meeting.wait(WATCHDOG), "slow") for _ in range(lanes.SLOW_THREADS)))
    lanes.stop()


@pytest.mark.asyncio
async def test_an_exception_comes_back() -> None:
    def fail() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await lanes.run(fail)
    lanes.stop()


@pytest.mark.django_db(transaction=True)
def test_the_end_closes_every_threads_connection() -> None:
    seen: list[Any] = []

    def query() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        seen.append(connections["default"])

    before = threading.active_count()
    for lane in ("fast", "push"):
        asyncio.run(lanes.run(query, lane))
    assert all(wrapper.connection is not None for wrapper in seen)
    lanes.stop()
    assert [wrapper.connection for wrapper in seen] == [None, None]
    assert threading.active_count() <= before
