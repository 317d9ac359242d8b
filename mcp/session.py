"""The method table: a checked message and a connection in, one answer out. Knows no transport."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from agents.principals import BadKey
from duduclaw import events
from mcp import lanes, receipts, render, wire
from mcp.connection import Connection
from mcp.inflight import Running, inflight
from mcp.toolcall import tools_call
from mcp.wire import Message, Reply, WireError

log = logging.getLogger(__name__)
PROGRESS = 15.0  # seconds between progress notes
INSTRUCTIONS = (
    "DuDuClaw: your tools are exactly those you may call now. The list changes when an operator or a grant "
    "changes it; list again on notifications/tools/list_changed. A refusal says what would open the tool."
)
SERVER = {"name": "duduclaw", "title": "DuDuClaw", "version": "1"}
Handler = Callable[[Connection, Message, Running], Awaitable[Reply]]


async def handle(connection: Connection, message: Message) -> Reply | None:
    """Answer one message; None for a notification, an answer of the client, or a cancelled request.

    Raises `BadKey` when the key opens nothing any more; whatever else breaks is an internal error without detail.
    """
    if not message.is_request:
        notified(connection, message)
        return None
    try:
        with inflight.entered(connection.session, message.id) as running:
            return await answered(connection, message, running)
    except WireError as fault:
        return wire.reply_of(fault)
    except BadKey:
        raise
    except Exception:
        log.exception("%s failed", message.method[:64])
        return Reply(wire.error(message.id, wire.INTERNAL_ERROR, "Internal error"))


async def answered(connection: Connection, message: Message, running: Running) -> Reply | None:
    """Run a request's method."""
    wire.check(message, connection.revision)
    handler = METHODS.get(message.method)
    if handler is None:
        raise wire.unknown_method(message)
    connection.running.add(running)
    try:
        async with progress(connection, message, running):
            reply = await handler(connection, message, running)
        return None if running.cancelled else reply
    finally:
        connection.running.discard(running)


def notified(connection: Connection, message: Message) -> None:
    """Notifications change nothing but a call in flight; unknown ones are ignored, as the protocol asks."""
    request = message.params.get("requestId")
    if message.method != "notifications/cancelled" or not wire.good_id(request) or not connection.session:
        return
    here = inflight.cancel(connection.session, request)
    if not here and connection.transport == "http":
        events.send("cancel", session=connection.session, request=request)


@asynccontextmanager
async def progress(connection: Connection, message: Message, running: Running) -> AsyncIterator[None]:
    """Notes now and then while a request runs, for a client that asked for them."""
    if message.progress_token is None:
        yield
        return
    ticker = asyncio.get_running_loop().create_task(tick(connection, message, running))
    try:
        yield
    finally:
        ticker.cancel()


async def tick(connection: Connection, message: Message, running: Running) -> None:
    """Count until cancelled."""
    count = 0
    while True:
        await asyncio.sleep(PROGRESS)
        count += 1
        words = "waiting for a person" if running.parked_on else "working"
        note = {"progressToken": message.progress_token, "progress": count, "message": words}
        await connection.send(wire.notification("notifications/progress", note))


async def initialize(connection: Connection, message: Message, running: Running) -> Reply:
    """Agree on a revision and write the session's receipt."""
    asked = message.params.get("protocolVersion")
    connection.revision = asked if asked in wire.REVISIONS else wire.LATEST
    client = message.params.get("clientInfo") or {}

    def open_session() -> None:
        receipts.opened(
            connection.session,
            connection.who(),
            connection.transport,
            revision=connection.revision,
            client=f"{client.get('name', '')} {client.get('version', '')}".strip(),
            listening=connection.watch is not None,
        )

    await lanes.run(open_session)
    body = {
        "protocolVersion": connection.revision,
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }
    return Reply(wire.result(message.id, body))


async def ping(connection: Connection, message: Message, running: Running) -> Reply:
    """Alive."""
    return Reply(wire.result(message.id, {}))


async def tools_list(connection: Connection, message: Message, running: Running) -> Reply:
    """The visible set, in one page."""
    if message.params.get("cursor") is not None:
        raise WireError(wire.INVALID_PARAMS, "Invalid params: cursor: unknown cursor", message.id)
    watch = connection.watch
    notices = watch.notices if watch is not None else 0
    frame, known = await lanes.run(lambda: listed(connection, message))
    if watch is not None:
        watch.known = known if watch.notices == notices else ""
        watch.relisted.set()
    return Reply(frame)


def listed(connection: Connection, message: Message) -> tuple[str, str]:
    """In a lane: the frame, and the set that the session knows now ("" when it was told of another meanwhile).

    A socket is its session's only stream, so what it knows needs no look at the receipt.
    """
    watch = connection.watch
    if watch is not None and watch.known and connection.transport != "http":
        view = render.view(connection.who())
        if view.fingerprint == watch.known:
            return view.frame(message.id), view.fingerprint
    before = receipts.read(connection.session) if connection.session else None
    view = render.view(connection.who())
    settled = before is None or receipts.listed(connection.session, before, view.fingerprint)
    return view.frame(message.id), view.fingerprint if settled else ""


METHODS: dict[str, Handler] = {
    "initialize": initialize,
    "ping": ping,
    "tools/list": tools_list,
    "tools/call": tools_call,
}
