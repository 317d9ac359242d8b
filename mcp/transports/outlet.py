"""One socket's way out: a frame at a time, and no patience without end for a client that does not read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

STUCK = 30.0  # seconds


class Outlet:
    """`send` is the ASGI callable, `abort` drops the connection with what it still holds."""

    def __init__(self, send: Callable[[dict[str, Any]], Awaitable[None]], abort: Callable[[], None]) -> None:
        self._send = send
        self._abort = abort
        self._turn = asyncio.Lock()
        self.closed = False

    async def say(self, frame: str) -> None:
        """Send a text frame; nothing after the end."""
        await self._put({"type": "websocket.send", "text": frame})

    async def close(self, code: int, reason: str = "") -> None:
        """Say goodbye once, after what was said before."""
        await self._put({"type": "websocket.close", "code": code, "reason": reason[:100]}, last=True)

    async def _put(self, event: dict[str, Any], *, last: bool = False) -> None:
        if self.closed:
            return
        try:
            async with asyncio.timeout(STUCK), self._turn:
                if not self.closed:
                    self.closed = last
                    await self._send(event)
        except TimeoutError:
            self.closed = True
            self._abort()
        except (OSError, RuntimeError):
            # The server says in either way that the peer has closed, or has been closed for its faults.
            self.closed = True
