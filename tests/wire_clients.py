"""Tiny synchronous MCP clients, one a transport, all with the same face. They hide nothing: frames are dicts.

    with ws_client(url, token) as client:
        client.initialize()
        client.names()                                   # {"tasks_list", ...}
        frame = client.call("tasks_list", {"limit": 5})  # {"jsonrpc", "id", "result" | "error"}
        client.wait_changed(1)                           # list_changed heard so far, under a watchdog

`url` is the server's `http://host:port`: `mcp_server.url` of the fixture (the application in this process; it is
not called `live_server`, which pytest-django claims), or `stack(engine).url` (processes of its own).
"""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.services import ROOT
from tests.stack import OURS, WATCHDOG

Frame = dict[str, Any]
CHANGED = "notifications/tools/list_changed"
REVISION = "2025-11-25"


class Peer:
    """What all clients share: requests, answers by id, and notifications in order of arrival."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.ids = itertools.count(1)
        self.ended: str | int | None = None  # close code, exit code, HTTP status, or words
        self.news = threading.Condition()

    def send_raw(self, text: str) -> None:
        """Send a frame as it stands."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave."""
        raise NotImplementedError

    def take(self, text: str) -> None:
        """A frame arrived."""
        with self.news:
            self.frames.append(json.loads(text))
            self.news.notify_all()

    def end(self, how: str | int) -> None:
        """The other side ended the link."""
        with self.news:
            self.ended = how
            self.news.notify_all()

    def wait(self, look: Callable[[], Any], what: str, seconds: float = WATCHDOG) -> Any:
        """The first truthy `look()`, which is asked again with each frame that arrives."""
        with self.news:
            found = self.news.wait_for(look, seconds)
        assert found, f"waited {seconds:.0f} s for {what}; the link: {self.ended or 'open'}"
        return found

    def begin(self, method: str, params: Frame | None = None, *, number: Any = None) -> Any:
        """Send a request and do not wait; answers its id."""
        number = next(self.ids) if number is None else number
        body = {"jsonrpc": "2.0", "id": number, "method": method}
        self.send_raw(json.dumps(body | ({} if params is None else {"params": params})))
        return number

    def notify(self, method: str, params: Frame | None = None) -> None:
        """Send a notification."""
        self.send_raw(json.dumps({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})))

    def answered(self, number: Any) -> Frame | None:
        """The answer to a request, if it came."""
        return next((frame for frame in list(self.frames) if "method" not in frame and frame.get("id") == number), None)

    def answer(self, number: Any, seconds: float = WATCHDOG) -> Frame:
        """Wait for the answer to a request; fails when the link ends first."""
        self.wait(lambda: self.answered(number) or self.ended is not None, f"the answer to {number!r}", seconds)
        found = self.answered(number)
        assert found is not None, f"the link ended ({self.ended}) before the answer to {number!r}"
        return found

    def request(self, method: str, params: Frame | None = None) -> Frame:
        """Send a request and wait for its frame."""
        return self.answer(self.begin(method, params))

    def initialize(self, revision: str = REVISION) -> Frame:
        """The handshake; answers its result."""
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        result: Frame = self.request("initialize", params)["result"]
        self.notify("notifications/initialized")
        return result

    def tools(self) -> list[Frame]:
        """The entries of `tools/list`."""
        found: list[Frame] = self.request("tools/list")["result"]["tools"]
        return found

    def names(self) -> set[str]:
        """The names of `tools/list`."""
        return {tool["name"] for tool in self.tools()}

    def call(self, name: str, arguments: Frame | None = None, *, token: str | None = None) -> Frame:
        """Call a tool; `token` asks for progress notes."""
        return self.answer(self.begin_call(name, arguments, token=token))

    def begin_call(self, name: str, arguments: Frame | None = None, *, token: str | None = None) -> Any:
        """Call a tool and do not wait."""
        meta = {"_meta": {"progressToken": token}} if token else {}
        return self.begin("tools/call", {"name": name, "arguments": arguments or {}, **meta})

    def notes(self, method: str = CHANGED) -> int:
        """Notifications of a kind that came so far."""
        return sum(frame.get("method") == method for frame in list(self.frames))

    def wait_changed(self, count: int) -> None:
        """Wait until list_changed came `count` times in all."""
        self.wait(lambda: self.notes() >= count, f"list_changed number {count}")

    def wait_ended(self) -> str | int:
        """Wait for the other side to end the link; answers how."""
        self.wait(lambda: self.ended is not None, "the end of the link")
        assert self.ended is not None
        return self.ended


class WsPeer(Peer):
    """A WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        super().__init__()
        self.socket = socket
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        with suppress(ConnectionClosed):
            for frame in self.socket:
                self.take(str(frame))
        self.end(self.socket.close_code or "lost")

    def send_raw(self, text: str) -> None:
        self.socket.send(text)

    def close(self) -> None:
        self.socket.close()
        self.reader.join(WATCHDOG)


@contextmanager
def ws_client(url: str, token: str, headers: dict[str, str] | None = None, **options: Any) -> Iterator[WsPeer]:
    """Connected over WebSocket."""
    address = f"{url.replace('http', 'ws', 1)}/ws/mcp/"
    extra = {"Authorization": f"Bearer {token}", **(headers or {})}
    usual: dict[str, Any] = {"subprotocols": ["mcp"], "compression": None, "max_size": None}
    with connect(address, additional_headers=extra, **{**usual, **options}) as socket:
        peer = WsPeer(socket)
        try:
            yield peer
        finally:
            peer.close()


class HttpPeer(Peer):
    """Streamable HTTP: each frame is a POST in a thread of its own, so that requests may overlap."""

    def __init__(self, url: str, token: str, headers: dict[str, str] | None = None) -> None:
        super().__init__()
        self.url = f"{url}/mcp"
        self.http = httpx.Client(timeout=WATCHDOG, limits=httpx.Limits(max_connections=None))
        accept = "application/json, text/event-stream"
        self.headers = {"Authorization": f"Bearer {token}", "Accept": accept, **(headers or {})}
        self.statuses: list[int] = []
        self.streams: list[httpx.Response] = []

    def send_raw(self, text: str) -> None:
        if '"id"' not in text:
            self.post(text)
            return
        threading.Thread(target=self.try_post, args=(text,), daemon=True).start()

    def try_post(self, text: str) -> None:
        """A POST whose connection may be lost."""
        try:
            self.post(text)
        except httpx.TransportError as error:
            self.end(f"lost: {error!r}")

    def post(self, text: str, **headers: str) -> httpx.Response:
        """One POST, its frames taken; answers the response."""
        extra = {"Content-Type": "application/json", **self.headers, **headers}
        with self.http.stream("POST", self.url, content=text.encode(), headers=extra) as response:
            self.statuses.append(response.status_code)
            if "mcp-session-id" in response.headers:
                self.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
            if response.headers.get("content-type") == "text/event-stream":
                self.take_events(response)
            elif response.read() and response.json().get("jsonrpc"):
                self.take(response.text)
            elif response.status_code >= 400:
                self.end(response.status_code)
        return response

    def call_and_leave(self, name: str, arguments: Frame, seconds: float = 0.5) -> None:
        """Call a tool and drop the connection when there is no answer after a while."""
        body = {"jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call"}
        content = json.dumps({**body, "params": {"name": name, "arguments": arguments}})
        headers = {"Content-Type": "application/json", **self.headers}
        with suppress(httpx.ReadTimeout):
            answer = self.http.post(self.url, content=content, headers=headers, timeout=seconds)
            raise AssertionError(f"the call was answered: {answer.text}")

    def take_events(self, response: httpx.Response) -> None:
        for line in response.iter_lines():
            if line.startswith("data: "):
                self.take(line.removeprefix("data: "))

    def initialize(self, revision: str = REVISION) -> Frame:
        result = super().initialize(revision)
        self.headers["MCP-Protocol-Version"] = result["protocolVersion"]
        return result

    def listen(self) -> int:
        """Open the GET stream and read it in a thread; answers its status."""
        opened: queue.Queue[int] = queue.Queue()
        threading.Thread(target=self.read_stream, args=(opened,), daemon=True).start()
        return opened.get(timeout=WATCHDOG)

    def read_stream(self, opened: "queue.Queue[int]") -> None:
        headers = {**self.headers, "Accept": "text/event-stream"}
        with suppress(httpx.TransportError, httpx.StreamError), self.http.stream("GET", self.url, headers=headers) as r:
            self.streams.append(r)
            opened.put(r.status_code)
            self.take_events(r)
        self.end("stream closed")

    def close(self) -> None:
        self.http.close()


@contextmanager
def http_client(url: str, token: str, headers: dict[str, str] | None = None) -> Iterator[HttpPeer]:
    """A client over Streamable HTTP; `initialize` gets its session, `listen` its stream."""
    peer = HttpPeer(url, token, headers)
    try:
        yield peer
    finally:
        peer.close()


class StdioPeer(Peer):
    """The stdio bridge as a process, as an MCP client starts it."""

    def __init__(self, env: dict[str, str]) -> None:
        super().__init__()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        argv = [sys.executable, str(ROOT / "manage.py"), "mcp_stdio"]
        self.process = subprocess.Popen(argv, env=env, **pipes)  # type: ignore[call-overload]
        self.lines: list[bytes] = []
        self.errors: list[bytes] = []
        self.readers = [
            threading.Thread(target=self.read, daemon=True),
            threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)
            self.take(line.decode())
        self.end(self.process.wait())

    def send_raw(self, text: str) -> None:
        self.send_bytes(text.encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Write to its stdin."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(WATCHDOG)
        finally:
            self.process.kill()
            for reader in self.readers:
                reader.join(WATCHDOG)
            self.process.stdout.close()
            self.process.stderr.close()


@contextmanager
def stdio_client(url: str, token: str, **env: str) -> Iterator[StdioPeer]:
    """Connected through `manage.py mcp_stdio`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    peer = StdioPeer({**kept, "DUDUCLAW_URL": url, "DUDUCLAW_MCP_API_KEY": token, **env})
    try:
        yield peer
    finally:
        peer.close()


CLIENTS: dict[str, Callable[..., Any]] = {"ws": ws_client, "http": http_client, "stdio": stdio_client}
