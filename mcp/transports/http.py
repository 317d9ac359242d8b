"""The HTTP half of Streamable HTTP: bodies, statuses and server-sent events."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from mcp import wire
from mcp.transports import edge
from mcp.transports.edge import Refusal

JSON, STREAM = "application/json", "text/event-stream"
STUCK = 30.0  # seconds that a client may take to read before its answer is given up


class Gone(Exception):
    """The client left, or reads nothing: there is nobody to answer."""


@dataclass(eq=False)
class Exchange:
    """One request and its answer, which becomes a stream with the first `note`."""

    scope: dict[str, Any]
    receive: Any
    send: Any
    headers: dict[str, list[str]]
    extra: dict[str, str] = field(default_factory=dict)  # headers of the answer
    streaming: bool = False
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
                raise Gone
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > wire.MAX_FRAME:
                raise Refusal(413, "too_large", "a message has at most 1 MiB")
            if not event.get("more_body"):
                return b"".join(parts)

    async def left(self) -> None:
        """Returns when the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def put(self, event: dict[str, Any]) -> None:
        """Hand something to the server, which waits while the client does not read."""
        try:
            async with asyncio.timeout(STUCK):
                await self.send(event)
        except TimeoutError:
            raise Gone from None

    async def start(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        """Status and headers."""
        lines = {"content-type": content_type, "cache-control": "no-store", "x-content-type-options": "nosniff"}
        pairs = [(name.encode(), value.encode()) for name, value in {**lines, **self.extra, **headers}.items()]
        await self.put({"type": "http.response.start", "status": status, "headers": pairs})

    async def json(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        """A whole answer."""
        data = body.encode()
        await self.start(status, JSON, {"content-length": str(len(data)), **(headers or {})})
        await self.put({"type": "http.response.body", "body": data})

    async def refuse(self, refusal: Refusal) -> None:
        """A refusal of the edge."""
        await self.json(refusal.status, refusal.body, dict(refusal.headers))

    async def empty(self, status: int) -> None:
        """No body."""
        await self.start(status, JSON, {} if status == 204 else {"content-length": "0"})
        await self.put({"type": "http.response.body", "body": b""})

    async def open_stream(self) -> None:
        """Begin server-sent events; the first comment gets the headers through every proxy."""
        self.streaming = True
        await self.start(200, STREAM, {"x-accel-buffering": "no"})
        await self.write(": open\n\n")

    async def write(self, text: str) -> None:
        """A piece of the stream."""
        async with self.writing:
            await self.put({"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def event(self, frame: str) -> None:
        """One frame as an event."""
        await self.write(f"event: message\ndata: {frame}\n\n")

    async def note(self, frame: str) -> None:
        """A notification before the answer: from now on it is a stream, when the client reads those."""
        if not self.streaming:
            if not accepts_stream(self.headers):
                return
            await self.open_stream()
        await self.event(frame)

    async def close_stream(self) -> None:
        """End the stream."""
        await self.put({"type": "http.response.body", "body": b""})

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


def negotiate(headers: dict[str, list[str]]) -> None:
    """JSON in, JSON or a stream out."""
    sent = edge.one(headers, "content-type").split(";")[0].strip().lower()
    if sent != JSON:
        raise Refusal(415, "unsupported_media_type", "send application/json")
    if not accepts(headers, JSON, "application/*"):
        raise Refusal(406, "not_acceptable", "accept application/json and text/event-stream")


def accepts_stream(headers: dict[str, list[str]]) -> bool:
    """Whether the client reads server-sent events."""
    return "accept" in headers and accepts(headers, STREAM, "text/*")


def accepts(headers: dict[str, list[str]], *types: str) -> bool:
    """Whether `Accept` names one of the media types, or all, or is absent."""
    values = headers.get("accept")
    named = {part.split(";")[0].strip().lower() for value in values or () for part in value.split(",")}
    return values is None or bool(named & {*types, "*/*"})
