"""One open stream to a client, followed: when its visible set differs from what its session knows, it is told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from agents import principals
from agents.principals import BadKey
from duduclaw.lib import clock
from duduclaw.lib.outage import Outage
from mcp import lanes, receipts, render
from mcp.policy import Who
from mcp.wire import LIST_CHANGED

COALESCE = 0.05  # seconds
AGAIN = 1.0  # seconds until the next look after one that failed
REVOKED, BAD_KEY, RESTART = 4403, 4401, 1001
trouble = Outage(logging.getLogger(__name__), "looking after open streams")


@dataclass(eq=False)
class Watch:
    """How to prove a stream's principal, how to send, how to end it with a WebSocket close code and a reason.

    It has a task of its own, so that a client that does not read delays nobody.
    """

    token: str
    session: str
    send: Callable[[str], Awaitable[None]]
    close: Callable[[int, str], Awaitable[None]]
    who: Who
    known: str | None = None  # the set that the client looked at in this process; "" once told of another
    notices: int = 0
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    urgent: asyncio.Event = field(default_factory=asyncio.Event)
    relisted: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def refs(self) -> list[tuple[str, str]]:
        """The things whose versions decide this principal, in the order of `who.version`."""
        found = [("key", self.who.key), ("workspace", self.who.workspace)]
        return [*found, ("agent", self.who.agent)] if self.who.agent else found

    def hurry(self) -> None:
        """Look now: somebody waits for it."""
        self.urgent.set()
        self.dirty.set()

    async def follow(self) -> None:
        """Look whenever something moved, until the key no longer opens anything."""
        while True:
            await self.dirty.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.urgent.wait(), COALESCE)
            self.dirty.clear()
            self.urgent.clear()
            try:
                await self.tell()
                trouble.ended()
            except BadKey as reason:
                await self.close(code_of(reason), reason.reason)
                return
            except Exception as error:
                trouble.began(error)
                await asyncio.sleep(AGAIN)
                self.dirty.set()

    async def tell(self) -> None:
        """Compare the sets, and notify when they differ. Raises `BadKey`."""
        if await lanes.run(self.differs, "push"):
            self.known, self.notices = "", self.notices + 1
            self.relisted.clear()
            await self.send(LIST_CHANGED)
            moment = clock.now()
            await lanes.run(lambda: receipts.delivered(self.session, moment), "push")

    def differs(self) -> bool:
        """In a lane: whether the session must be told now, by this stream."""
        receipt = receipts.read(self.session)
        self.who = principals.who_for_key(self.token)
        current = render.view(self.who).fingerprint
        if receipt is None or not receipt.told or receipt.told == current:
            return False
        return receipts.claim_notice(self.session, receipt.told, current)


def code_of(reason: BadKey) -> int:
    """The close code that says why a key opens nothing any more."""
    return REVOKED if reason.reason in ("revoked", "agent_gone") else BAD_KEY
