"""A web process: HTTP and WebSocket on one port. `python -m duduclaw.web`, started by `duduclaw.serve`.

With an argument it serves on the inherited socket of that number, which the supervisor keeps open over restarts;
without one it opens `HOST` and `PORT` itself.
"""

import socket
import sys
from typing import Any

import uvicorn
from django.conf import settings
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from duduclaw.asgi import application
from mcp.transports import lifespan

LARGEST_FRAME = 1 << 20  # bytes, as every other inbound limit
DRAIN, CLOSE = 2.5, 1  # seconds: for answers in flight, then for connections to end
NOT_STARTED = 3


class Server(uvicorn.Server):
    """Answers what has begun before it says goodbye to the connections."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing, answer what runs, then close as ever."""
        for server in self.servers:
            server.close()
        await lifespan.wind_down(DRAIN)
        await super().shutdown(sockets)


class WebSocket(WebSocketsSansIOProtocol):
    """A socket that the application may drop with all that it still holds: a client that reads nothing keeps a
    polite close waiting for ever."""

    def handle_connect(self, event: Request) -> None:
        """As ever, and hand the way out to the application, which starts after this."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions["duduclaw.abort"] = self.transport.abort

    async def send(self, message: ASGISendEvent) -> None:
        """As ever; a refused handshake is complete, or the log would complain of each."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True


def options() -> dict[str, Any]:
    """How uvicorn speaks. Its own log stays below WARNING off: it would print addresses, and an address may hold
    what people should not have put there."""
    return {
        "ws": WebSocket,
        "ws_max_size": LARGEST_FRAME,
        "ws_per_message_deflate": False,
        "timeout_graceful_shutdown": CLOSE,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "log_config": None,
        "log_level": "warning",
    }


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM."""
    server = Server(uvicorn.Config(application, host=settings.HOST.strip("[]"), port=settings.PORT, **options()))
    server.run([socket.socket(fileno=int(arguments[0]))] if arguments else None)
    return 0 if server.started else NOT_STARTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
