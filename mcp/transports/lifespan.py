"""Start and end of a web process: the hub's ear from the start, the lanes' threads until the end."""

from typing import Any

from mcp import draining, lanes
from mcp.push import hub


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI lifespan protocol."""
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            draining.reset()
            hub.start()
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            hub.stop()
            lanes.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def wind_down(seconds: float) -> None:
    """Answer what has begun, begin nothing new, then tell every open stream to connect again."""
    await draining.drain(seconds)
    await hub.close_all()
