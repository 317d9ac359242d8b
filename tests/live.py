"""The real ASGI application in a thread of the test process, on a free port, over the test's own database.

Test tools of `registry.temporarily` and rows made by builders are visible to it. `tests.stack` is the other
kind of server: processes of its own, as in production.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from django.conf import settings

from duduclaw import web
from duduclaw.asgi import application
from mcp.push import hub
from tests.stack import WATCHDOG, free_port, wait_until


@dataclass(frozen=True, slots=True)
class Live:
    """Where it listens."""

    url: str
    server: uvicorn.Server
    loop: asyncio.AbstractEventLoop

    @property
    def ws_url(self) -> str:
        """Where WebSocket clients connect."""
        return f"{self.url.replace('http', 'ws', 1)}/ws/mcp/"

    @property
    def mcp_url(self) -> str:
        """Where HTTP clients connect."""
        return f"{self.url}/mcp"

    def settle(self) -> None:
        """Return when every open stream has been told of all that it must hear by now."""

        async def look() -> None:
            for watch in hub.all():
                await watch.tell()

        asyncio.run_coroutine_threadsafe(look(), self.loop).result(WATCHDOG)


class Server(web.Server):
    """A uvicorn server that tells its loop."""

    loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(sockets)


@contextmanager
def serving(port: int | None = None) -> Iterator[Live]:
    """Serve until the end of the block, with the options of the web process."""
    settings.PORT = port or free_port()
    server = Server(uvicorn.Config(application, port=settings.PORT, **web.options()))
    thread = threading.Thread(target=server.run, name="live-server", daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), "the live server")
        assert server.started and server.loop
        yield Live(f"http://127.0.0.1:{settings.PORT}", server, server.loop)
    finally:
        server.should_exit = True
        thread.join(WATCHDOG)
        assert not thread.is_alive(), "the live server did not end"
