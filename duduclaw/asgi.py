"""The ASGI application: `/mcp`, `/tools` and `/ws/mcp/` beside Django, without its view machinery."""

import os
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "duduclaw.settings")
django_application = get_asgi_application()

from mcp.transports import absent, lifespan, streamable, websocket  # noqa: E402

RAW = {"/mcp": streamable.application, "/mcp/": streamable.application, "/tools": streamable.introspection}


async def http(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """MCP by exact path, everything else to Django."""
    application = RAW.get(scope["path"])
    if application is None:
        application = absent.application if scope["path"].startswith(absent.PREFIX) else django_application
    await application(scope, receive, send)


application = ProtocolTypeRouter({"http": http, "websocket": websocket.application, "lifespan": lifespan.application})
