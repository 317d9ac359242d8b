"""The hub: all open streams of this process, its ear at the channel layer, and the sweep.

Level-triggered: an event only says "look", each stream compares sets. The sweep compares version numbers, so a
lost event costs a second and a dead channel layer changes nothing.
"""

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import Any

from channels.layers import get_channel_layer

from agents import principals
from duduclaw import events
from duduclaw.events import Event
from duduclaw.lib import clock
from duduclaw.lib.outage import Outage
from mcp import lanes
from mcp.inflight import inflight
from mcp.parking import park
from mcp.watch import RESTART, Watch

log = logging.getLogger(__name__)
SWEEP = 1.0  # seconds; revocation and lost events are healed within two
RETRY = 2.0  # seconds between tries of a dead channel layer
CHUNK = 200  # things a version query
GOODBYE = 0.5  # seconds for a stream to take its end


class Hub:
    """Every open stream, found by session too."""

    def __init__(self) -> None:
        self.watches: dict[str, set[Watch]] = defaultdict(set)
        self.tasks: list[asyncio.Task[None]] = []
        self.swept = Outage(log, "the sweep of open streams")

    def all(self) -> list[Watch]:
        """The streams now open."""
        return [watch for streams in self.watches.values() for watch in streams]

    def of(self, session: str) -> Watch | None:
        """An open stream of that session in this process."""
        return next(iter(self.watches.get(session, ())), None)

    def add(self, watch: Watch) -> None:
        """Follow a stream; it looks at once, for what changed before it came."""
        self.watches[watch.session].add(watch)
        watch.task = asyncio.get_running_loop().create_task(watch.follow(), name="watch")
        watch.dirty.set()

    def drop(self, watch: Watch) -> bool:
        """The stream ended; True when it was the session's last one here."""
        streams = self.watches.get(watch.session, set())
        streams.discard(watch)
        if not streams:
            self.watches.pop(watch.session, None)
        if watch.task and watch.task is not asyncio.current_task():
            watch.task.cancel()
        return not streams

    def start(self) -> None:
        """One ear, one voice and one sweep for the running loop."""
        loop = asyncio.get_running_loop()
        self.stop()
        voice = events.Voice(self.heard)
        jobs = {"ear": self.listen(), "voice": voice.speak(), "sweep": self.sweep()}
        self.tasks = [loop.create_task(job, name=name) for name, job in jobs.items()]

    def stop(self) -> None:
        """End them."""
        for task in self.tasks:
            with suppress(RuntimeError):
                task.cancel()
        self.tasks = []

    async def close_all(self) -> None:
        """The process ends: each stream is told to connect again."""
        ends = [asyncio.wait_for(watch.close(RESTART, "restart"), GOODBYE) for watch in self.all()]
        await asyncio.gather(*ends, return_exceptions=True)

    async def listen(self) -> None:
        """Hear events; a channel layer that is dead at the start is tried again."""
        while True:
            layer = get_channel_layer()
            try:
                channel = await layer.new_channel()
                await layer.group_add(events.GROUP, channel)
                events.trouble.ended()
                self.look_all()
                while True:
                    event = await layer.receive(channel)
                    if event.get("source") != events.SOURCE:
                        self.heard(event)
            except Exception as error:
                events.trouble.began(error)
                await start_over(layer)
                await asyncio.sleep(RETRY)

    def look_all(self) -> None:
        """Events may have been missed."""
        for watch in self.all():
            watch.dirty.set()

    def heard(self, event: Event) -> None:
        """An event only says where to look."""
        topic = event.get("topic")
        if topic == "approval":
            park.wake(event.get("id", ""))
        elif topic == "cancel":
            inflight.cancel(event.get("session", ""), event.get("request"))
        elif topic == "look" and (watch := self.of(event.get("session", ""))) is not None:
            watch.hurry()
        elif topic in ("policy", "key"):
            self.look(event.get("agent"), event.get("workspace"), event.get("id"))

    def look(self, agent: str | None, workspace: str | None, key: str | None) -> None:
        """Those whose principal is, or belongs to, one of these."""
        for watch in self.all():
            who = watch.who
            if (agent and who.agent == agent) or (workspace and who.workspace == workspace) or (key and who.key == key):
                watch.dirty.set()

    async def sweep(self) -> None:
        """Each second: whose version moved, or whose time ran out?"""
        while True:
            await asyncio.sleep(SWEEP)
            try:
                for watch in await lanes.run(partial(moved, self.all()), "push"):
                    watch.dirty.set()
                self.swept.ended()
            except Exception as error:
                self.swept.began(error)


async def start_over(layer: Any) -> None:
    """Close what is left of the layer's connections; a fault of that is part of the outage."""
    try:
        await layer.flush()
    except Exception as error:
        events.trouble.began(error)


def moved(watches: list[Watch]) -> list[Watch]:
    """Those whose rights may have changed since they last looked."""
    wanted = sorted({ref for watch in watches for ref in watch.refs()})
    numbers: dict[tuple[str, str], int] = {}
    for start in range(0, len(wanted), CHUNK):
        numbers |= principals.versions(wanted[start : start + CHUNK])
    now = clock.now()
    return [
        watch
        for watch in watches
        if tuple(numbers[ref] for ref in watch.refs()) != watch.who.version
        or (watch.who.valid_until is not None and watch.who.valid_until <= now)
    ]


hub = Hub()
