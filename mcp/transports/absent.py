"""`/.well-known/`: clients look there for OAuth before they send a key; what is not there is JSON 404."""

from typing import Any

from mcp.transports import edge
from mcp.transports.edge import Refusal
from mcp.transports.http import Exchange

PREFIX = "/.well-known/"


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Nothing is served here yet."""
    exchange = Exchange(scope, receive, send, edge.headers_of(scope))
    await exchange.refuse(Refusal(404, "not_found", "no such document; send the key as Authorization: Bearer"))
