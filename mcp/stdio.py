"""The stdio bridge: newline frames on stdin and stdout, one WebSocket to the server, frames unchanged.

Imports no Django, so that the first answer comes within half a second. stdout carries protocol only, logs go to
stderr (LOG_LEVEL=DEBUG: each frame's direction). Environment: DUDUCLAW_URL, DUDUCLAW_MCP_API_KEY, DUDUCLAW_TASK_ID
(sent as X-DuDuClaw-Task), DUDUCLAW_CONNECT_SECONDS (how long to look for a server that never answered, 20).
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

MAX_FRAME = 1024 * 1024  # bytes
BACK_OFF = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between tries
QUEUED = 5.0  # seconds that a request waits for a lost server to come back
LINGER = 30.0  # seconds that requests in flight get after the client closed stdin
MOST_HELD = 1_000  # frames that wait for a connection
FINAL_CODES = frozenset({4401, 4403})  # close codes and statuses that no new try can mend
FINAL_STATUSES = frozenset({400, 401, 403, 404, 421})
LINK_LOST, UNREACHABLE, BAD_FRAME, BAD_REQUEST = -32000, -32001, -32700, -32600
LIST_CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
DEBUG = os.environ.get("LOG_LEVEL", "").upper() == "DEBUG"


def log(text: str) -> None:
    """To stderr; the key is never part of it."""
    print(f"mcp_stdio: {text}", file=sys.stderr, flush=True)


def debug(text: str) -> None:
    """To stderr when asked for."""
    if DEBUG:
        log(text)


def say(frame: str) -> None:
    """One line of protocol."""
    try:
        sys.stdout.buffer.write(frame.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        raise GiveUp("the client closed stdout") from None


def fail(identifier: Any, code: int, text: str) -> None:
    """An error frame of our own."""
    say(json.dumps({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": text}}))


def address(url: str) -> str:
    """The WebSocket address of a server's `http(s)://host:port`."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme, "ws")
    path = parts.path if parts.path.rstrip("/").endswith("/ws/mcp") else "/ws/mcp/"
    return urlunsplit((scheme, parts.netloc, path, "", ""))


def decoded(text: str) -> dict[str, Any]:
    """The JSON object of a frame; empty when it is none, which is the server's to judge."""
    with contextlib.suppress(ValueError, RecursionError):
        body = json.loads(text)
        if isinstance(body, dict):
            return body
    return {}


class GiveUp(Exception):
    """No new try can mend it."""


@dataclass(eq=False)
class Held:
    """A frame that waits for a connection; `id` is None for what expects no answer."""

    frame: str
    id: Any = None


class Bridge:
    """One client, one socket at a time."""

    def __init__(self, url: str, key: str, task: str | None, patience: float) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}", "X-DuDuClaw-Bridge": "stdio"}
        self.headers |= {} if task is None else {"X-DuDuClaw-Task": task}
        self.patience = patience
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.socket: ClientConnection | None = None
        self.pending: dict[Any, str] = {}
        self.idle = asyncio.Event()
        self.held: list[Held] = []
        self.handshake: dict[str, Any] | None = None
        self.resumed: set[str] = set()
        self.listed = False
        self.answered = False

    async def run(self) -> int:
        """0 when the client left after the server had answered, else 1."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self.read_stdin, args=(loop,), daemon=True).start()
        up, down = loop.create_task(self.upward()), loop.create_task(self.stay_connected())
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if not down.done() and self.pending and (self.socket or not self.answered):
            idle = loop.create_task(self.idle.wait())
            await asyncio.wait({down, idle}, timeout=LINGER, return_when=asyncio.FIRST_COMPLETED)
        fault = next((task.exception() for task in (down, up) if task.done() and task.exception()), None)
        if fault is not None:
            log(str(fault))
        self.fail_all(UNREACHABLE, str(fault or "no answer before the client left"))
        return 0 if self.answered and fault is None else 1

    def read_stdin(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: lines end at byte 0x0A and nowhere else."""
        for line in iter(sys.stdin.buffer.readline, b""):
            loop.call_soon_threadsafe(self.lines.put_nowait, line)
        loop.call_soon_threadsafe(self.lines.put_nowait, None)

    async def upward(self) -> None:
        """Client to server, until the client closes stdin."""
        while (line := await self.lines.get()) is not None:
            frame = self.noted(line)
            if frame is None:
                continue
            socket = self.socket
            if socket is None:
                self.hold(frame)
                continue
            try:
                await socket.send(frame.frame)
            except ConnectionClosed:
                self.fail_one(frame.id, LINK_LOST, LOST)

    def noted(self, line: bytes) -> Held | None:
        """The frame to send, unchanged; what is needed later is remembered. None for what is answered here."""
        try:
            text = line.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError:
            fail(None, BAD_FRAME, "Parse error: the line is not UTF-8")
            return None
        if not text.strip():
            return None
        body = decoded(text)
        identifier, method = body.get("id"), body.get("method")
        request = identifier if method and isinstance(identifier, str | int | float) else None
        if len(line) > MAX_FRAME:
            fail(request, BAD_REQUEST, "Invalid request: a message has at most 1 MiB")
            return None
        debug(f"client: {method} {identifier}")
        if request is not None:
            self.pending[request] = str(method)
            self.idle.clear()
        if method == "initialize" and request is not None:
            self.handshake = body
        self.listed = self.listed or method == "tools/list"
        return Held(text, request)

    def hold(self, item: Held) -> None:
        """Keep a frame until there is a connection; a server that was there before gets a few seconds only."""
        if len(self.held) >= MOST_HELD:
            self.fail_one(item.id, UNREACHABLE, AWAY)
            return
        self.held.append(item)
        if self.answered and item.id is not None:
            asyncio.get_running_loop().call_later(min(QUEUED, self.patience), self.expire, item)

    def expire(self, item: Held) -> None:
        """It waited long enough."""
        if item in self.held:
            self.held.remove(item)
            self.fail_one(item.id, UNREACHABLE, AWAY)

    async def stay_connected(self) -> None:
        """One connection after the other; ends by `GiveUp` only."""
        while True:
            async with await self.open() as socket:
                await self.resume(socket)
                await self.downward(socket)
            self.socket = None
            self.fail_sent()
            if socket.close_code in FINAL_CODES:
                raise GiveUp(f"the server ended the session: {socket.close_reason or socket.close_code}")
            log(f"connection lost ({socket.close_code}), trying again")

    async def open(self) -> ClientConnection:
        """Connect, with back-off. Before the first answer patience is short; afterwards it has no end."""
        loop = asyncio.get_running_loop()
        deadline, tries = loop.time() + self.patience, 0
        while True:
            reason = await self.try_open()
            if isinstance(reason, ClientConnection):
                return reason
            if not self.answered and loop.time() > deadline:
                raise GiveUp(f"no server at {self.url}: {reason}; is it running, and is DUDUCLAW_URL right?")
            if not tries:
                log(f"no connection ({reason}), trying again")
            await asyncio.sleep(BACK_OFF[min(tries, len(BACK_OFF) - 1)])
            tries += 1

    async def try_open(self) -> ClientConnection | str:
        """A connection, or why there is none yet. Raises `GiveUp` when there will be none."""
        try:
            return await connect(
                self.url,
                additional_headers=self.headers,
                subprotocols=[Subprotocol("mcp")],
                max_size=None,
                compression=None,
            )
        except InvalidURI as error:
            raise GiveUp(f"DUDUCLAW_URL is no address: {error}") from None
        except InvalidStatus as error:
            status = error.response.status_code
            if status in FINAL_STATUSES:
                raise GiveUp(
                    f"the server refused the connection with HTTP {status}; check DUDUCLAW_MCP_API_KEY and DUDUCLAW_URL"
                ) from None
            return f"HTTP {status}"
        except (InvalidHandshake, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__

    async def resume(self, socket: ClientConnection) -> None:
        """Introduce the client again after a lost connection, let it look at its tools, then send what waited."""
        with contextlib.suppress(ConnectionClosed):
            if self.answered and self.handshake is not None:
                again = f"mcp_stdio-{len(self.resumed)}-{id(socket)}"
                self.resumed.add(again)
                await socket.send(json.dumps({**self.handshake, "id": again}))
                await socket.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
                log("connected again")
                if self.listed:
                    say(LIST_CHANGED)
            while self.held:
                item = self.held.pop(0)
                await socket.send(item.frame)
        self.socket = socket

    async def downward(self, socket: ClientConnection) -> None:
        """Server to client, until the connection ends."""
        with contextlib.suppress(ConnectionClosed):
            async for frame in socket:
                text = frame if isinstance(frame, str) else frame.decode("utf-8", "replace")
                self.answered = True
                body = decoded(text)
                debug(f"server: {body.get('method', 'answer')} {body.get('id')}")
                if "method" not in body and self.settles(body.get("id")):
                    continue
                say(text)

    def settles(self, identifier: Any) -> bool:
        """A request is answered; True when it was ours and not the client's."""
        if isinstance(identifier, str) and identifier in self.resumed:
            self.resumed.discard(identifier)
            return True
        if isinstance(identifier, str | int | float):
            self.done(identifier)
        return False

    def done(self, identifier: Any) -> bool:
        """Nobody waits for this request any longer; False when nobody did."""
        known = self.pending.pop(identifier, None) is not None
        if not self.pending:
            self.idle.set()
        return known

    def fail_one(self, identifier: Any, code: int, text: str) -> None:
        """A request gets its one answer from us."""
        if identifier is not None and self.done(identifier):
            fail(identifier, code, text)

    def fail_sent(self) -> None:
        """What was sent and not answered will not be."""
        waiting = {item.id for item in self.held}
        for identifier in [known for known in self.pending if known not in waiting]:
            self.fail_one(identifier, LINK_LOST, LOST)

    def fail_all(self, code: int, text: str) -> None:
        """The end: every request gets an answer, those that nobody read yet too."""
        with contextlib.suppress(GiveUp):
            while not self.lines.empty():
                if line := self.lines.get_nowait():
                    self.noted(line)
            for identifier in list(self.pending):
                self.fail_one(identifier, code, text)


LOST = "the connection to the server was lost; whether the call ran is not known"
AWAY = "the server is away; try again"


def main(arguments: list[str]) -> int:
    """Exit code 0 after the client closed stdin, 1 when the server never answered or ended it, 2 for wrong usage."""
    key = os.environ.get("DUDUCLAW_MCP_API_KEY", "")
    if arguments or not key:
        log("set DUDUCLAW_MCP_API_KEY (and DUDUCLAW_URL, default http://127.0.0.1:8000); it takes no arguments")
        return 2
    url = address(os.environ.get("DUDUCLAW_URL", "http://127.0.0.1:8000"))
    try:
        patience = float(os.environ.get("DUDUCLAW_CONNECT_SECONDS", "20"))
    except ValueError:
        log("DUDUCLAW_CONNECT_SECONDS is no number of seconds")
        return 2
    try:
        code = asyncio.run(Bridge(url, key, os.environ.get("DUDUCLAW_TASK_ID"), patience).run())
    except KeyboardInterrupt:
        code = 130
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)  # the thread on stdin may be blocked for ever
