"""One tools/call over a connection: through the choke point, waiting without a thread when a person must answer,
and with its result held back while the client looks at tools that the call has changed."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from duduclaw import events
from mcp import calls, draining, lanes, parking, receipts, registry, render, wire
from mcp.calls import Answer, CallRequest
from mcp.connection import Connection
from mcp.errors import Parked
from mcp.inflight import Running
from mcp.parking import park, seconds_left
from mcp.receipts import Receipt
from mcp.registry import Tool
from mcp.wire import Message, Reply

HOLD = 0.25  # seconds that a result waits for the client to look at its new tools
GLANCE = 0.02  # seconds between our looks at whether it has
STALE = "duduclaw/stale_tools"


async def tools_call(connection: Connection, message: Message, running: Running) -> Reply:
    """The method."""
    call = ToolCall(connection, message, running, request_of(connection, message, running))
    answer = await call.answered()
    if answer.outcome == "ok" and call.may_change_rights:
        await call.hold()
    return reply_of(message, answer, stale=call.is_stale())


def request_of(connection: Connection, message: Message, running: Running) -> CallRequest:
    """The call as the choke point takes it."""
    return CallRequest(
        principal=connection.who,
        name=message.params["name"],
        arguments=dict(message.params.get("arguments") or {}),
        request_id=str(message.id),
        transport=connection.transport,
        round_task=connection.round_task,
        cancelled=lambda: running.cancelled,
    )


@dataclass(eq=False)
class ToolCall:
    """A call on its way. `seen` and `receipt` are as of its last step."""

    connection: Connection
    message: Message
    running: Running
    request: CallRequest
    first: str = ""  # the visible set when the call began
    seen: str = ""
    receipt: Receipt | None = None

    @property
    def tool(self) -> Tool | None:
        """The tool called, if there is one of that name."""
        return registry.get(self.request.name)

    @property
    def may_change_rights(self) -> bool:
        """Whether the call may have changed what its own caller sees."""
        return self.tool is not None and not self.tool.read_only and bool(self.connection.session)

    async def answered(self) -> Answer:
        """Call, and call again when the row that it waits for was decided."""
        started = time.monotonic()
        answer = await self.step(calls.call)
        while answer.parked is not None:
            answer = await self.waited(answer.parked, parking.PATIENCE - (time.monotonic() - started))
        return answer

    async def waited(self, parked: Parked, patience: float) -> Answer:
        """What comes of a call that waited: run, taken back, or still open."""
        until = seconds_left(parked.until)
        if self.message.progress_token is not None:
            patience = until
        if self.connection.gone:
            self.running.cancel()
        self.running.parked_on = parked.id
        woken = not self.running.cancelled and await park.wait(
            parked.id, self.connection.key, max(0.0, min(until, patience))
        )
        self.running.parked_on = ""
        if self.running.cancelled:
            return await self.step(calls.cancel)
        if (woken or not seconds_left(parked.until)) and not draining.now():
            self.request.resumed = parked.id
            return await self.step(calls.call)
        return await self.step(partial(calls.pending, parked=parked))

    async def step(self, work: Callable[[CallRequest], Answer]) -> Answer:
        """One piece of work in the tool's lane."""
        slow = self.tool is not None and self.tool.slow
        return await lanes.run(partial(self.do, work), "slow" if slow else "fast")

    def do(self, work: Callable[[CallRequest], Answer]) -> Answer:
        """In a lane."""
        answer = work(self.request)
        self.look()
        return answer

    def look(self) -> None:
        """In a lane: what the caller sees as of the call, and what its session knows of that."""
        if self.request.who is not None:
            self.seen = render.view(self.request.who).fingerprint
            self.first = self.first or self.seen
        if self.connection.session and self.connection.transport == "http":
            self.receipt = receipts.read(self.connection.session)
            if self.is_stale() and self.receipt and not self.receipt.stale:
                receipts.fell_behind(self.connection.session)

    async def hold(self) -> None:
        """When the call changed the caller's own set, the client hears of it, and looks, before it has the result."""
        if not await lanes.run(self.must_look):
            return
        self.hurry()
        deadline = time.monotonic() + HOLD
        while (left := deadline - time.monotonic()) > 0:
            await self.glance(left)
            await lanes.run(self.look)
            if not self.is_stale():
                return

    def must_look(self) -> bool:
        """In a lane: whether the call changed the set, and the session can and should hear of it."""
        self.request.prove()
        self.look()
        receipt = receipts.read(self.connection.session)
        changed = self.seen != self.first
        return changed and receipt is not None and receipt.listening and receipt.listed not in ("", self.seen)

    def hurry(self) -> None:
        """The stream that tells the session, here or in another process, looks now."""
        watch = self.connection.watch
        if watch is not None:
            watch.hurry()
        else:
            events.send("look", session=self.connection.session)

    async def glance(self, left: float) -> None:
        """Until the client lists again in this process, or, where it may do so in another, for a moment."""
        watch = self.connection.watch
        pause = left if self.connection.transport != "http" else min(left, GLANCE)
        if watch is None:
            await asyncio.sleep(pause)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(watch.relisted.wait(), pause)
        watch.relisted.clear()

    def is_stale(self) -> bool:
        """Whether the session looked at its tools once and they are others now."""
        watch = self.connection.watch
        if self.connection.transport != "http":
            return watch is not None and watch.known not in (None, self.seen)
        return self.receipt is not None and self.receipt.listed not in ("", self.seen)


def reply_of(message: Message, answer: Answer, *, stale: bool) -> Reply:
    """A result, or an error with what HTTP says besides."""
    if answer.error is not None:
        code, text, data = answer.error
        frame = wire.error(message.id, code, text, data)
        return Reply(frame, 429, data["retry_after"]) if code == wire.RATE_LIMITED else Reply(frame)
    body: dict[str, Any] = {"content": answer.content}
    if answer.structured is not None:
        body["structuredContent"] = answer.structured
    body["isError"] = answer.is_error
    if stale:
        body["_meta"] = {STALE: True}
    return Reply(wire.result(message.id, body))
