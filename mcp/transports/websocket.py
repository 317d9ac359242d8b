"""MCP over WebSocket: one JSON-RPC message a text frame, in a Channels consumer."""

import asyncio
import logging
from functools import partial
from typing import Any

from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer
from django.db import DatabaseError

from agents import principals
from agents.principals import BadKey
from duduclaw.lib import clock, rate
from duduclaw.lib.ids import new_id
from mcp import draining, lanes, receipts, session, wire
from mcp.connection import Connection
from mcp.policy import Who
from mcp.push import hub
from mcp.transports import edge
from mcp.transports.edge import Refusal
from mcp.transports.outlet import Outlet
from mcp.watch import Watch, code_of
from mcp.wire import Message, Reply, WireError

log = logging.getLogger(__name__)
IN_FLIGHT = 64  # requests of one socket; more wait unread
NOISE = rate.Bucket(6_000, 1_000)  # frames a minute that are no requests for work
UNSUPPORTED, TOO_MUCH = 1003, 1008
PATHS = frozenset({"/ws/mcp/", "/ws/mcp"})


class McpConsumer(AsyncConsumer):
    """One socket. It has no channel of its own: the process's hub hears for all, and outlives a dead layer."""

    channel_layer_alias = "none"

    async def dispatch(self, message: dict[str, Any]) -> None:
        """As Channels does, without its look at database connections: the loop has none."""
        await getattr(self, get_handler_name(message))(message)

    async def websocket_connect(self, event: dict[str, Any]) -> None:
        """Judge the edge and the key before accepting."""
        self.link: Connection | None = None
        try:
            await self.open()
        except Refusal as refusal:
            await deny(self.scope, self.base_send, refusal)

    async def open(self) -> None:
        """Prove the key, accept, and follow what the principal may see. Raises `Refusal`."""
        headers = edge.headers_of(self.scope)
        edge.admit(self.scope, headers)
        if draining.now():
            raise Refusal(503, "restarting", "this process is ending; try again")
        offered = self.scope.get("subprotocols", ())
        token = edge.key_of(headers, offered) or ""
        transport = "stdio" if edge.one(headers, "x-duduclaw-bridge") == "stdio" else "ws"
        name = new_id()
        try:
            who = await lanes.run(partial(open_session, token, name, transport))
        except BadKey as reason:
            edge.turn_away(self.scope)
            raise Refusal(403, reason.reason, "a valid key is needed") from None
        except DatabaseError as error:
            log.warning("a socket could not be proved: %s", error)
            raise edge.unavailable() from None
        abort = self.scope.get("extensions", {}).get("duduclaw.abort", lambda: None)
        self.outlet = Outlet(self.base_send, abort)
        self.room = asyncio.Semaphore(IN_FLIGHT)
        self.noise = rate.Limiter({"frames": NOISE})
        self.tasks: set[asyncio.Task[None]] = set()
        await self.base_send({"type": "websocket.accept", "subprotocol": "mcp" if "mcp" in offered else None})
        self.link = Connection(
            token, who.key, transport, self.outlet.say, session=name, round_task=edge.round_task(headers)
        )
        self.watch = Watch(token, name, self.outlet.say, self.end, who)
        hub.add(self.watch)

    async def websocket_receive(self, event: dict[str, Any]) -> None:
        """Start on one frame; the next is read while this one runs."""
        text, link = event.get("text"), self.link
        if link is None or draining.now():
            return
        if text is None:
            await self.outlet.close(UNSUPPORTED, "text frames only")
            return
        try:
            message: Message | WireError = wire.parse(text)
        except WireError as fault:
            message = fault
        if self.too_noisy(message):
            await self.outlet.close(TOO_MUCH, "too many frames")
            return
        await self.room.acquire()
        task = asyncio.get_running_loop().create_task(self.serve(link, message))
        self.tasks.add(task)
        task.add_done_callback(self.served)

    def too_noisy(self, message: Message | WireError) -> bool:
        """Requests for work have buckets of their own at the choke point; everything else is counted here."""
        if isinstance(message, Message) and message.method in ("tools/call", "tools/list"):
            return False
        return self.noise.check("", "frames", clock.now().timestamp()) is not None

    def served(self, task: "asyncio.Task[None]") -> None:
        """Make room for the next message."""
        self.tasks.discard(task)
        self.room.release()
        if not task.cancelled() and task.exception():
            log.error("a message failed", exc_info=task.exception())

    async def serve(self, link: Connection, message: Message | WireError) -> None:
        """One message in, at most one frame out."""
        if draining.now():
            return
        with draining.work():
            try:
                reply = await answer(link, message)
            except BadKey as reason:
                await self.end(code_of(reason), reason.reason)
                return
            if reply is not None:
                await self.outlet.say(reply.frame)

    async def end(self, code: int, reason: str) -> None:
        """Close from our side."""
        await self.outlet.close(code, reason)

    async def websocket_disconnect(self, event: dict[str, Any]) -> None:
        """The client is gone, or has been told to go."""
        if self.link is not None:
            self.outlet.closed = True
            hub.drop(self.watch)
            self.link.leave()
            try:
                await lanes.run(partial(receipts.closed, self.link.session), "push")
            except DatabaseError as error:
                log.warning("a socket's end was not written down: %s", error)
        raise StopConsumer


async def answer(link: Connection, message: Message | WireError) -> Reply | None:
    """What a frame is answered with."""
    if isinstance(message, WireError):
        return wire.reply_of(message)
    return await session.handle(link, message)


def open_session(token: str, name: str, transport: str) -> Who:
    """In a lane: prove the key and write the session's row."""
    who = principals.who_for_key(token)
    receipts.opened(name, who, transport, listening=True)
    return who


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Every WebSocket: ours by exact path, the others do not exist."""
    if scope["path"] in PATHS:
        await consumer(scope, receive, send)
        return
    await receive()
    await deny(scope, send, Refusal(404, "not_found", "MCP is at /ws/mcp/"))


async def deny(scope: dict[str, Any], send: Any, refusal: Refusal) -> None:
    """Answer the handshake with a status; 403 where the server cannot say another."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-type", b"application/json"), *((n.encode(), v.encode()) for n, v in refusal.headers)]
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": refusal.body.encode()})


consumer = McpConsumer.as_asgi()
