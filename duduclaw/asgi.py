"""The ASGI application: `/mcp`, `/tools` and `/ws/mcp/` beside Django, without its view machinery."""

import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "duduclaw.settings")
django_application = get_asgi_application()

from mcp.transports import lifespan, streamable, websocket  # noqa: E402

RAW = {"/mcp": streamable.application, "/mcp/": streamable.application, "/tools": streamable.introspection}


async def http(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """MCP by exact path, everything else to Django."""
    await RAW.get(scope["path"], django_application)(scope, receive, send)


application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": URLRouter([path("ws/mcp/", websocket.McpConsumer.as_asgi())]),
        "lifespan": lifespan.application,
    }
)
