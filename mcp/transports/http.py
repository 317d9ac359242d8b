"""The HTTP half of Streamable HTTP: bodies, statuses, server-sent events, and which requests are in flight."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp import wire
from mcp.parking import park
from mcp.session import Connection, Running
from mcp.transports import edge
from mcp.transports.edge import Refusal
from mcp.wire import Message

JSON, STREAM = "application/json", "text/event-stream"
_in_flight: dict[tuple[str, Any], Running] = {}


@dataclass(eq=False)
class Exchange:
    """One request and its answer."""

    scope: dict[str, Any]
    receive: Any
    send: Any
    headers: dict[str, list[str]]
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def body(self) -> bytes:
        """The whole body, at most 1 MiB."""
        declared = edge.one(self.headers, "content-length")
        if declared.isdigit() and int(declared) > wire.MAX_FRAME:
            raise Refusal(413, "too_large", "a message has at most 1 MiB")
        parts, size = [], 0
        while True:
            event = await self.receive()
            if event["type"] == "http.disconnect":
                raise Refusal(400, "incomplete", "the body was cut off")
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > wire.MAX_FRAME:
                raise Refusal(413, "too_large", "a message has at most 1 MiB")
            if not event.get("more_body"):
                return b"".join(parts)

    async def start(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        """Status and headers."""
        lines = {"content-type": content_type, "cache-control": "no-store", "x-content-type-options": "nosniff"}
        pairs = [(name.encode(), value.encode()) for name, value in {**lines, **headers}.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})

    async def json(self, status: int, body: str, headers: dict[str, str]) -> None:
        """A whole answer."""
        await self.start(status, JSON, headers)
        await self.send({"type": "http.response.body", "body": body.encode()})

    async def error(self, status: int, frame: str, headers: dict[str, str] | None = None) -> None:
        """A JSON-RPC error with an HTTP status."""
        await self.json(status, frame, headers or {})

    async def refuse(self, refusal: Refusal) -> None:
        """A refusal of the edge."""
        extra = {"allow": "POST, GET, DELETE"} if refusal.status == 405 else {}
        await self.json(refusal.status, wire.dumps({"error": refusal.error, "detail": refusal.detail}), extra)

    async def empty(self, status: int) -> None:
        """No body."""
        await self.start(status, JSON, {})
        await self.send({"type": "http.response.body", "body": b""})

    async def open_stream(self, headers: dict[str, str]) -> None:
        """Begin server-sent events; the first comment gets the headers through every proxy."""
        await self.start(200, STREAM, {**headers, "x-accel-buffering": "no"})
        await self.write(": open\n\n")

    async def event(self, frame: str) -> None:
        """One frame as an event."""
        if frame:
            await self.write(f"event: message\ndata: {frame}\n\n")

    async def write(self, text: str) -> None:
        async with self.writing:
            await self.send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def close_stream(self) -> None:
        """End the answer."""
        await self.send({"type": "http.response.body", "body": b""})

    async def keep_open(self, ended: asyncio.Event, interval: float) -> None:
        """Comment now and then until the client leaves or the stream is ended."""
        loop = asyncio.get_running_loop()
        waiting = {loop.create_task(self.left()), loop.create_task(ended.wait())}
        try:
            while not (await asyncio.wait(waiting, timeout=interval, return_when="FIRST_COMPLETED"))[0]:
                await self.write(": keep-alive\n\n")
        finally:
            for task in waiting:
                task.cancel()

    async def left(self) -> bool:
        """Returns when the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        return True


def negotiate(headers: dict[str, list[str]]) -> None:
    """JSON in, JSON or a stream out."""
    sent = edge.one(headers, "content-type").split(";")[0].strip().lower()
    if sent != JSON:
        raise Refusal(415, "unsupported_media_type", "send application/json")
    accept = edge.one(headers, "accept")
    if accept and not any(word in accept for word in ("*/*", JSON, "application/*")):
        raise Refusal(406, "not_acceptable", "accept application/json and text/event-stream")


def accepts_stream(headers: dict[str, list[str]]) -> bool:
    """Whether the client reads server-sent events."""
    accept = edge.one(headers, "accept")
    return STREAM in accept or "*/*" in accept or "text/*" in accept


@contextmanager
def in_flight(link: Connection, message: Message) -> Iterator[None]:
    """Other requests of the session may cancel this one while it runs."""
    place = (link.session, message.id)
    if place in _in_flight:
        raise wire.invalid("this id is in flight already", message.id)
    _in_flight[place] = link.prepared[message.id] = Running()
    try:
        yield
    finally:
        del _in_flight[place]


def cancel(name: str, message: Message) -> None:
    """`notifications/cancelled` arrives as a request of its own."""
    if message.method == "notifications/cancelled" and wire.good_id(message.params.get("requestId")):
        running = _in_flight.get((name, message.params["requestId"]))
        if running is not None:
            running.cancelled = True
            park.wake(running.parked_on)
