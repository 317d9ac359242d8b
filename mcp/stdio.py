"""The stdio bridge: newline frames on stdin and stdout, one WebSocket to the server, frames unchanged.

Imports no Django, so that the first answer comes within half a second. stdout carries protocol only.
Environment: DUDUCLAW_URL, DUDUCLAW_MCP_API_KEY, DUDUCLAW_TASK_ID (sent as X-DuDuClaw-Task).
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

MAX_FRAME = 1024 * 1024
FIRST_CONNECT = float(os.environ.get("DUDUCLAW_CONNECT_SECONDS", "20"))  # seconds before giving up for good
BACK_OFF = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between tries
FINAL = frozenset({4401, 4403})  # close codes that no new try can mend
LINGER = 30.0  # seconds that requests in flight get after the client closed stdin
LINK_LOST, UNREACHABLE, BAD_FRAME = -32000, -32001, -32700
LIST_CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


def log(text: str) -> None:
    """Logs go to stderr; the key never does."""
    print(f"mcp_stdio: {text}", file=sys.stderr, flush=True)


def say(frame: str) -> None:
    """One line of protocol."""
    sys.stdout.buffer.write(frame.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


def fail(identifier: Any, code: int, text: str) -> None:
    """An error frame of our own."""
    say(json.dumps({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": text}}))


def address(url: str) -> str:
    """The WebSocket address of a server's `http(s)://host:port`."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme, "ws")
    path = parts.path if parts.path.rstrip("/").endswith("/ws/mcp") else "/ws/mcp/"
    return urlunsplit((scheme, parts.netloc, path, "", ""))


class GiveUp(Exception):
    """No new try can mend it."""


class Bridge:
    """One client, one socket at a time."""

    def __init__(self, url: str, key: str, task: str | None) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}", **({} if task is None else {"X-DuDuClaw-Task": task})}
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.pending: dict[Any, str] = {}
        self.handshake: str | None = None
        self.listed = False
        self.swallow: set[Any] = set()
        self.answered = False
        self.closed = False

    def read_stdin(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: lines end at byte 0x0A and nowhere else."""
        for line in iter(sys.stdin.buffer.readline, b""):
            loop.call_soon_threadsafe(self.lines.put_nowait, line)
        loop.call_soon_threadsafe(self.lines.put_nowait, None)

    async def run(self) -> int:
        """0 when the client left after the server had answered, else 1."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self.read_stdin, args=(loop,), daemon=True).start()
        try:
            while not self.closed:
                async with await self.open() as socket:
                    await self.resume(socket)
                    await self.carry(socket)
        except GiveUp as reason:
            log(str(reason))
            self.fail_pending(UNREACHABLE, str(reason))
            return 1
        return 0 if self.answered else 1

    async def open(self) -> ClientConnection:
        """Connect, with back-off. Before the first answer patience is short; afterwards it has no end."""
        loop = asyncio.get_running_loop()
        deadline, tries = loop.time() + FIRST_CONNECT, 0
        while True:
            try:
                return await connect(
                    self.url,
                    additional_headers=self.headers,
                    subprotocols=["mcp"],  # type: ignore[list-item]
                    max_size=None,
                    compression=None,
                    ping_interval=20,
                )
            except InvalidURI as error:
                raise GiveUp(f"DUDUCLAW_URL is no address: {error}") from None
            except InvalidHandshake as error:
                if getattr(getattr(error, "response", None), "status_code", 0) in (400, 401, 403, 404, 421):
                    raise GiveUp(f"the server refused the connection: {error}; check DUDUCLAW_MCP_API_KEY") from None
                reason = str(error)
            except OSError as error:
                reason = error.strerror or str(error)
            if not self.answered and loop.time() > deadline:
                raise GiveUp(f"no server at {self.url}: {reason}; is it running, and is DUDUCLAW_URL right?")
            log(f"no connection ({reason}), trying again")
            await asyncio.sleep(BACK_OFF[min(tries, len(BACK_OFF) - 1)])
            tries += 1

    async def resume(self, socket: ClientConnection) -> None:
        """A new socket after a lost one: introduce the client again, and let it look at its tools again."""
        if self.handshake is None:
            return
        self.swallow.add(json.loads(self.handshake)["id"])
        await socket.send(self.handshake)
        await socket.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        if self.listed:
            say(LIST_CHANGED)

    async def carry(self, socket: ClientConnection) -> None:
        """Both directions until the client leaves or the socket is lost."""
        down = asyncio.create_task(self.downward(socket))
        up = asyncio.create_task(self.upward(socket))
        try:
            await asyncio.wait({down, up}, return_when=asyncio.FIRST_COMPLETED)
            if up.done() and not down.done() and self.closed:
                await asyncio.wait({down}, timeout=LINGER if self.pending else 0)
        finally:
            for task in (down, up):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                    await task
        if not self.closed or self.pending:
            self.fail_pending(LINK_LOST, "the connection to the server was lost; whether the call ran is not known")
        if socket.close_code in FINAL:
            raise GiveUp(f"the server ended the session: {socket.close_reason or socket.close_code}")

    async def upward(self, socket: ClientConnection) -> None:
        """Client to server."""
        while (line := await self.lines.get()) is not None:
            frame = self.outgoing(line)
            if frame:
                try:
                    await socket.send(frame)
                except ConnectionClosed:
                    return
        self.closed = True

    def outgoing(self, line: bytes) -> str:
        """The frame to send, unchanged; what is needed to resume is noted. "" for what is answered here."""
        try:
            frame = line.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError:
            fail(None, BAD_FRAME, "Parse error: the line is not UTF-8")
            return ""
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(frame)
            if isinstance(body, dict) and "method" in body:
                self.note(body, frame)
        return frame

    def note(self, body: dict[str, Any], frame: str) -> None:
        if isinstance(body.get("id"), str | int | float):
            self.pending[body["id"]] = str(body["method"])
        if body["method"] == "initialize" and "id" in body:
            self.handshake = frame
        self.listed = self.listed or body["method"] == "tools/list"

    async def downward(self, socket: ClientConnection) -> None:
        """Server to client."""
        async for frame in socket:
            text = frame if isinstance(frame, str) else frame.decode("utf-8", "replace")
            self.answered = True
            if not self.settles(text):
                say(text)
            if self.closed and not self.pending:
                return

    def settles(self, text: str) -> bool:
        """True for the answer to a handshake that we repeated, which the client has already."""
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(text)
            if isinstance(body, dict) and "method" not in body and isinstance(body.get("id"), str | int | float):
                self.pending.pop(body["id"], None)
                if body["id"] in self.swallow:
                    self.swallow.discard(body["id"])
                    return True
        return False

    def fail_pending(self, code: int, text: str) -> None:
        """Every request gets an answer."""
        while not self.lines.empty() and code == UNREACHABLE:
            line = self.lines.get_nowait()
            if line is not None:
                self.outgoing(line)
        for identifier in list(self.pending):
            fail(identifier, code, text)
        self.pending.clear()


def main(arguments: list[str]) -> int:
    """Exit code 0 after the client closed stdin, 1 when the server never answered, 2 for wrong usage."""
    key = os.environ.get("DUDUCLAW_MCP_API_KEY", "")
    if arguments or not key:
        log("set DUDUCLAW_MCP_API_KEY (and DUDUCLAW_URL, default http://127.0.0.1:8000); it takes no arguments")
        return 2
    url = address(os.environ.get("DUDUCLAW_URL", "http://127.0.0.1:8000"))
    try:
        code = asyncio.run(Bridge(url, key, os.environ.get("DUDUCLAW_TASK_ID")).run())
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    os._exit(code)  # the thread on stdin may be blocked for ever
