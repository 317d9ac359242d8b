"""The only door to the channel layer. A lost event costs seconds, never the change: readers compare.

A web process lends its loop (`Voice`), so that no thread ever waits for Valkey and its own streams hear at once;
elsewhere an event is sent by the thread that made it, with little patience.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from duduclaw.lib.ids import new_id
from duduclaw.lib.outage import Outage

log = logging.getLogger(__name__)
GROUP = "duduclaw"
SOURCE = new_id()  # this process, which has heard its own events when they come back
PATIENCE = 2.0  # seconds for Valkey to take an event
UNSENT = 1_000  # events that wait for it; more are dropped
Event = dict[str, Any]
trouble = Outage(log, "the channel layer")


def publish(topic: str, **event: Any) -> None:
    """Tell every process of `topic` once the transaction has committed."""
    transaction.on_commit(lambda: send(topic, **event), robust=True)


def send(topic: str, **event: Any) -> None:
    """Tell them now; a dead Valkey is logged and healed by the readers' sweeps."""
    message = {"type": "duduclaw.event", "source": SOURCE, "topic": topic, **event}
    if _voices and _voices[-1].take(message):
        return
    try:
        async_to_sync(deliver)(message)
        trouble.ended()
    except Exception as error:
        trouble.began(error)


async def deliver(message: Event) -> None:
    """To the channel layer, or an error within `PATIENCE`."""
    await asyncio.wait_for(get_channel_layer().group_send(GROUP, message), PATIENCE)


class Voice:
    """Speaks for a process on the running loop, and lets the process itself hear first."""

    def __init__(self, heard: Callable[[Event], None]) -> None:
        self.heard = heard
        self.loop = asyncio.get_running_loop()
        self.unsent: asyncio.Queue[Event] = asyncio.Queue(UNSENT)

    def take(self, message: Event) -> bool:
        """From any thread; False when the loop has ended."""
        try:
            self.loop.call_soon_threadsafe(self.say, message)
        except RuntimeError:
            return False
        return True

    def say(self, message: Event) -> None:
        """On the loop."""
        self.heard(message)
        if not self.unsent.full():
            self.unsent.put_nowait(message)

    async def speak(self) -> None:
        """Carry events to the other processes until cancelled."""
        _voices.append(self)
        try:
            while True:
                message = await self.unsent.get()
                try:
                    await deliver(message)
                    trouble.ended()
                except Exception as error:
                    trouble.began(error)
        finally:
            _voices.remove(self)


_voices: list[Voice] = []


class Brief(logging.Filter):
    """The channel layer's receiver meets a dead Valkey each second, with a traceback: one line tells it."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            trouble.began(error)
        return error is None


logging.getLogger("channels_redis.pubsub").addFilter(Brief())
