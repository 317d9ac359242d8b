"""MCP over WebSocket: one JSON-RPC message a text frame, in a Channels consumer."""

import asyncio
import logging

from channels.generic.websocket import AsyncWebsocketConsumer

from agents import principals
from agents.principals import BadKey
from duduclaw.lib.ids import new_id
from mcp import draining, lanes, receipts, session, wire
from mcp.parking import park
from mcp.policy import Who
from mcp.push import Watch, hub
from mcp.session import Connection
from mcp.transports import edge
from mcp.wire import WireError

log = logging.getLogger(__name__)
IN_FLIGHT = 64  # messages of one socket; more wait unread
CLOSE = {"revoked": 4403, "agent_gone": 4403}
BAD_KEY, UNSUPPORTED, TOO_BIG = 4401, 1003, 1009


class McpConsumer(AsyncWebsocketConsumer):
    """One socket. It has no channel of its own: the process's hub hears for all, and outlives a dead layer."""

    channel_layer_alias = "none"

    async def connect(self) -> None:
        """Judge the edge and the key before accepting."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.room = asyncio.Semaphore(IN_FLIGHT)
        self.link: Connection | None = None
        self.gone = False
        try:
            headers = edge.headers_of(self.scope)
            edge.admit(self.scope, headers)
            token = edge.key_of(headers, self.scope.get("subprotocols"))
            name = new_id()
            who = await lanes.run(lambda: open_session(token, name))
        except edge.Refusal as refusal:
            await self.refuse(refusal.status, refusal.error, refusal.detail)
            return
        except BadKey as reason:
            await self.refuse(403, reason.reason, "a valid key is needed")
            return
        self.link = Connection(token or "", "ws", self.say, session=name, round_task=edge.round_task(headers))
        self.link.watch = Watch(token or "", self.link.session, self.say, self.end, who)
        await self.accept("mcp" if "mcp" in self.scope.get("subprotocols", ()) else None)
        hub.add(self.link.watch)

    async def refuse(self, status: int, error: str, detail: str) -> None:
        """Answer the handshake with a status; 403 where the server cannot say another."""
        if "websocket.http.response" not in self.scope.get("extensions", {}):
            await self.close()
            return
        body = wire.dumps({"error": error, "detail": detail}).encode()
        start = {"status": status, "headers": [(b"content-type", b"application/json")]}
        await self.base_send({"type": "websocket.http.response.start", **start})
        await self.base_send({"type": "websocket.http.response.body", "body": body})

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Start on one frame; the next is read while this one runs."""
        if text_data is None or self.link is None:
            await self.close(UNSUPPORTED)
            return
        if len(text_data) > wire.MAX_FRAME:
            await self.close(TOO_BIG)
            return
        if draining.now():
            return
        await self.room.acquire()
        task = asyncio.get_running_loop().create_task(self.serve(self.link, text_data))
        self.tasks.add(task)
        task.add_done_callback(self.served)

    def served(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        self.room.release()
        if not task.cancelled() and task.exception():
            log.error("a message failed: %r", task.exception())

    async def serve(self, link: Connection, text: str) -> None:
        """One frame in, at most one out."""
        with draining.work():
            try:
                frame = await session.handle(link, wire.parse(text))
            except WireError as fault:
                frame = wire.error_of(fault)
            except BadKey as reason:
                await self.end(reason)
                return
            if frame is not None:
                await self.say(frame)

    async def say(self, frame: str) -> None:
        """Send a frame; uvicorn holds us back while the client does not read. Nobody is there after the end."""
        if not self.gone:
            await self.send(text_data=frame)

    async def end(self, reason: BadKey) -> None:
        """The key opens nothing any more."""
        await self.close(CLOSE.get(reason.reason, BAD_KEY), reason.reason)
        if self.link and self.link.watch:
            hub.drop(self.link.watch)

    async def disconnect(self, code: int) -> None:
        """The client is gone. What runs is finished; what waits for a person ends here, its question lives on."""
        self.gone = True
        link = self.link
        if link is None or link.watch is None:
            return
        hub.drop(link.watch)
        for running in list(link.running.values()):
            running.cancelled = running.cancelled or bool(running.parked_on)
            park.wake(running.parked_on)
        await lanes.run(lambda: receipts.closed(link.session))


def open_session(token: str | None, name: str) -> Who:
    """In a lane: prove the key and write the session's row."""
    who = principals.who_for_key(token)
    receipts.opened(name, who, "ws", wire.DEFAULT_REVISION, "")
    return who
