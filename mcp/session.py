"""The method table: a checked message and a connection in, one frame out. Knows no transport."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from agents import principals
from mcp import calls, draining, lanes, receipts, registry, render, wire
from mcp.calls import Answer, CallRequest
from mcp.parking import PATIENCE, PROGRESS, park, seconds_left
from mcp.policy import Who
from mcp.push import Watch
from mcp.wire import Message, WireError

HOLD = 0.25  # seconds that a result waits for the client to look at its new tools
INSTRUCTIONS = (
    "DuDuClaw: your tools are exactly those you may call now. The list changes when an operator or a grant "
    "changes it; list again on notifications/tools/list_changed. A refusal says what would open the tool."
)
SERVER = {"name": "duduclaw", "title": "DuDuClaw", "version": "1"}


@dataclass(eq=False)
class Connection:
    """One client as the method table sees it. `send` may be called at any time, for notifications."""

    token: str
    transport: str
    send: Callable[[str], Awaitable[None]]
    revision: str = wire.DEFAULT_REVISION
    session: str = ""
    initialized: bool = False
    round_task: str | None = None
    watch: Watch | None = None
    running: dict[Any, "Running"] = field(default_factory=dict)
    prepared: dict[Any, "Running"] = field(default_factory=dict)  # made by a transport that must find it again

    def who(self) -> Who:
        """In a lane: the principal, proved anew."""
        return principals.who_for_key(self.token)


@dataclass(eq=False)
class Running:
    """A request in flight: cancelled or not, and the future that a cancellation wakes."""

    cancelled: bool = False
    parked_on: str = ""


Handler = Callable[[Connection, Message], Awaitable[str]]


async def handle(connection: Connection, message: Message) -> str | None:
    """Answer one message; None for a notification, an answer of the client, or a cancelled request."""
    if not message.is_request:
        notified(connection, message)
        return None
    if message.id in connection.running:
        return wire.error_of(wire.invalid("this id is in flight already", message.id))
    running = connection.running[message.id] = connection.prepared.pop(message.id, None) or Running()
    try:
        wire.check(message, connection.revision)
        handler = METHODS.get(message.method)
        if handler is None:
            raise WireError(wire.METHOD_NOT_FOUND, f"Method not found: {message.method[:64]}", message.id)
        frame = await handler(connection, message)
        return None if running.cancelled else frame
    except WireError as fault:
        return wire.error_of(fault)
    finally:
        connection.running.pop(message.id, None)


def notified(connection: Connection, message: Message) -> None:
    """Notifications change nothing but a call in flight; unknown ones are ignored, as the protocol asks."""
    if message.method != "notifications/cancelled":
        return
    request = message.params.get("requestId")
    running = connection.running.get(request) if wire.good_id(request) else None
    if running is not None:
        running.cancelled = True
        park.wake(running.parked_on)


async def initialize(connection: Connection, message: Message) -> str:
    """Agree on a revision and open the session's receipts."""
    asked = message.params.get("protocolVersion")
    connection.revision = asked if asked in wire.REVISIONS else wire.LATEST
    client = message.params.get("clientInfo") or {}
    name = f"{client.get('name', '')} {client.get('version', '')}".strip()

    def open_session() -> None:
        receipts.opened(connection.session, connection.who(), connection.transport, connection.revision, name)

    await lanes.run(open_session)
    connection.initialized = True
    body = {
        "protocolVersion": connection.revision,
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }
    return wire.result(message.id, body)


async def ping(connection: Connection, message: Message) -> str:
    """Alive."""
    return wire.result(message.id, {})


async def tools_list(connection: Connection, message: Message) -> str:
    """The visible set, in one page."""
    if message.params.get("cursor") is not None:
        raise WireError(wire.INVALID_PARAMS, "Invalid params: cursor: unknown cursor", message.id)

    def look() -> str:
        tools = render.visible(connection.who())
        if connection.session:
            receipts.listed(connection.session, render.fingerprint(tools))
        return render.list_frame(message.id, tools)

    frame = await lanes.run(look)
    if connection.watch:
        connection.watch.relisted.set()
    return frame


async def tools_call(connection: Connection, message: Message) -> str:
    """One call through the choke point, waiting without a thread when a person must answer."""
    running = connection.running[message.id]
    request = CallRequest(
        principal=connection.who,
        name=message.params["name"],
        arguments=dict(message.params.get("arguments") or {}),
        request_id=str(message.id),
        transport=connection.transport,
        round_task=connection.round_task,
        cancelled=lambda: running.cancelled,
    )
    tool = registry.get(request.name)
    answer = await run_call(connection, message, request, slow=bool(tool and tool.slow))
    if answer.outcome == "ok" and tool and not tool.read_only:
        await hold(connection)
    return frame_of(message, answer)


async def run_call(connection: Connection, message: Message, request: CallRequest, *, slow: bool) -> Answer:
    """Call, and call again when the row it waits for was decided."""
    running, started = connection.running[message.id], time.monotonic()
    answer = await lanes.run(functools.partial(calls.call, request), slow=slow)
    while answer.parked is not None:
        parked = answer.parked
        running.parked_on = parked.id
        until = seconds_left(parked.until)
        patience = until if message.progress_token is not None else PATIENCE - (time.monotonic() - started)
        decided = await wait(connection, message, parked.id, min(until, patience)) or patience >= until
        if running.cancelled:
            step = functools.partial(calls.cancel, request)
        elif decided and not draining.now():
            request.resumed = parked.id
            step = functools.partial(calls.call, request)
        else:
            step = functools.partial(calls.pending, request, parked)
        answer = await lanes.run(step, slow=slow)
    return answer


async def wait(connection: Connection, message: Message, row: str, seconds: float) -> bool:
    """Wait for a row in slices, with a progress note after each when the client asked for them."""
    key, deadline, notes = connection.token, time.monotonic() + seconds, 0
    if park.full(key):
        return False
    while (left := deadline - time.monotonic()) > 0:
        if await park.wait(row, key, min(left, PROGRESS)):
            return True
        if message.progress_token is not None:
            notes += 1
            note = {"progressToken": message.progress_token, "progress": notes, "message": "waiting for a person"}
            await connection.send(wire.notification("notifications/progress", note))
    return False


async def hold(connection: Connection) -> None:
    """When a call changed the caller's own set, the client hears of it, and looks, before it has the result."""
    watch = connection.watch
    if watch is None:
        return
    try:
        told = await lanes.run(watch.differs)
    except principals.BadKey:
        return
    if told:
        watch.relisted.clear()
        await watch.send(wire.LIST_CHANGED)
        try:
            await asyncio.wait_for(watch.relisted.wait(), HOLD)
        except TimeoutError:
            return


def frame_of(message: Message, answer: Answer) -> str:
    """A result or an error."""
    if answer.error is not None:
        code, text, data = answer.error
        return wire.error(message.id, code, text, data)
    body: dict[str, Any] = {"content": answer.content}
    if answer.structured is not None:
        body["structuredContent"] = answer.structured
    body["isError"] = answer.is_error
    return wire.result(message.id, body)


METHODS: dict[str, Handler] = {
    "initialize": initialize,
    "ping": ping,
    "tools/list": tools_list,
    "tools/call": tools_call,
}
