"""list_changed: when a principal's visible set differs from what a session was last told, it is told.

Level-triggered: an event only says "look"; each watch compares sets. A slow sweep looks at version numbers,
so a lost event costs seconds and a dead channel layer changes nothing. A watch has its own task: a client
that does not read delays nobody.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from channels.layers import get_channel_layer

from agents import principals
from agents.principals import BadKey
from duduclaw import events
from duduclaw.lib import clock
from mcp import lanes, receipts, render
from mcp.parking import park
from mcp.policy import Who
from mcp.wire import LIST_CHANGED

log = logging.getLogger(__name__)
COALESCE = 0.05  # seconds
SWEEP = 1.0  # seconds; revocation and lost events are healed within two
RETRY = 2.0  # seconds between tries of a dead channel layer
CHUNK = 200  # things a version query


@dataclass(eq=False)
class Watch:
    """One open stream to a client: how to prove its principal, how to send, how to end."""

    token: str
    session: str
    send: Callable[[str], Awaitable[None]]
    close: Callable[[BadKey], Awaitable[None]]
    who: Who
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    relisted: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def refs(self) -> list[tuple[str, str]]:
        """The things whose versions decide this principal, in the order of `who.version`."""
        found = [("key", self.who.key), ("workspace", self.who.workspace)]
        return [*found, ("agent", self.who.agent)] if self.who.agent else found

    async def follow(self) -> None:
        """Look whenever something moved, until the key no longer opens anything."""
        while True:
            await self.dirty.wait()
            await asyncio.sleep(COALESCE)
            self.dirty.clear()
            try:
                await self.look()
            except BadKey as reason:
                await self.close(reason)
                return
            except Exception as error:
                log.warning("a watch could not look: %s", error)
                await asyncio.sleep(SWEEP)
                self.dirty.set()

    async def look(self) -> None:
        """Compare, and tell when it differs."""
        if await lanes.run(self.differs):
            self.relisted.clear()
            await self.send(LIST_CHANGED)
            moment = clock.now()
            await lanes.run(lambda: receipts.delivered(self.session, moment))

    def differs(self) -> bool:
        """In a lane: whether the session must be told now, by this watch."""
        self.who = principals.who_for_key(self.token)
        known = receipts.told(self.session)
        current = render.fingerprint(render.visible(self.who))
        return bool(known) and known != current and receipts.claim_notice(self.session, known, current)


class Hub:
    """All watches of this process, the ear at the channel layer, and the sweep."""

    def __init__(self) -> None:
        self.watches: set[Watch] = set()
        self.tasks: list[asyncio.Task[None]] = []

    def add(self, watch: Watch) -> None:
        """Follow a stream; it looks at once, for what changed before it came."""
        self.start()
        self.watches.add(watch)
        watch.task = asyncio.get_running_loop().create_task(watch.follow(), name="watch")
        watch.dirty.set()

    def of(self, session: str) -> Watch | None:
        """An open stream of that session in this process."""
        return next((watch for watch in self.watches if watch.session == session), None)

    def drop(self, watch: Watch) -> None:
        """The stream ended."""
        self.watches.discard(watch)
        if watch.task and watch.task is not asyncio.current_task():
            watch.task.cancel()

    def start(self) -> None:
        """One ear and one sweep for the running loop."""
        loop = asyncio.get_running_loop()
        if not self.tasks or self.tasks[0].get_loop() is not loop or any(task.done() for task in self.tasks):
            self.stop()
            self.tasks = [loop.create_task(self.listen(), name="ear"), loop.create_task(self.sweep(), name="sweep")]

    def stop(self) -> None:
        """End the ear and the sweep."""
        for task in self.tasks:
            with suppress(RuntimeError):
                task.cancel()
        self.tasks = []

    async def listen(self) -> None:
        """Hear events until the channel layer dies, then try again."""
        while True:
            try:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(events.GROUP, channel)
                for watch in self.watches:
                    watch.dirty.set()
                while True:
                    self.heard(await layer.receive(channel))
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("channel layer: not heard: %s", error)
                await asyncio.sleep(RETRY)

    def heard(self, event: dict[str, str]) -> None:
        """An event only says where to look."""
        if event.get("topic") == "approval":
            park.wake(event.get("id", ""))
            return
        agent, workspace, key = event.get("agent"), event.get("workspace"), event.get("id")
        for watch in self.watches:
            who = watch.who
            if (agent and who.agent == agent) or (workspace and who.workspace == workspace) or (key and who.key == key):
                watch.dirty.set()

    async def sweep(self) -> None:
        """Each second: whose version moved, or whose time ran out?"""
        while True:
            await asyncio.sleep(SWEEP)
            try:
                watches = list(self.watches)
                for watch in await lanes.run(lambda: moved(watches)):
                    watch.dirty.set()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("the sweep failed: %s", error)


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
