"""Streamable HTTP as a raw ASGI application: POST a message, GET the stream, DELETE the session."""

import asyncio
import functools
import logging
from typing import Any

from agents import principals
from agents.principals import BadKey
from mcp import draining, lanes, receipts, render, session, wire
from mcp.policy import Who
from mcp.push import Watch, hub
from mcp.session import Connection
from mcp.transports import edge, http, tickets
from mcp.transports.edge import Refusal
from mcp.transports.http import Exchange
from mcp.wire import Message, WireError

log = logging.getLogger(__name__)
KEEP_ALIVE = 15.0  # seconds between comments of an idle stream
NO_KEY = {"www-authenticate": 'Bearer realm="mcp"'}


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """`/mcp`."""
    exchange = Exchange(scope, receive, send, edge.headers_of(scope))
    with draining.work():
        try:
            await serve(exchange)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except BadKey as reason:
            await exchange.error(401, wire.error(None, -32001, str(reason)), NO_KEY)
        except WireError as fault:
            await exchange.error(fault.http, wire.error_of(fault))


async def serve(exchange: Exchange) -> None:
    """Edge, key, method."""
    edge.admit(exchange.scope, exchange.headers)
    if draining.now():
        raise Refusal(503, "restarting", "this process is ending; try again")
    token = edge.key_of(exchange.headers)
    who = await lanes.run(functools.partial(principals.who_for_key, token))
    method = {"POST": post, "GET": stream, "DELETE": delete}.get(exchange.scope["method"])
    if method is None:
        raise Refusal(405, "method_not_allowed", "POST, GET or DELETE")
    await method(exchange, token or "", who)


async def post(exchange: Exchange, token: str, who: Who) -> None:
    """One message in, one answer out: JSON, or a stream when progress was asked for."""
    http.negotiate(exchange.headers)
    message = wire.parse(await exchange.body())
    revision = revision_of(exchange, message)
    ticket = edge.one(exchange.headers, "mcp-session-id")
    name = "" if message.method in ("initialize", "ping") and not ticket else tickets.open(ticket, who, message)
    link = Connection(token, "http", exchange.event, revision, name, round_task=edge.round_task(exchange.headers))
    link.watch = hub.of(name) if name else None
    if not message.is_request:
        http.cancel(name, message)
        await exchange.empty(202)
        return
    if message.method == "initialize":
        link.session, ticket = tickets.issue(who)
        await answer(exchange, link, message, {"mcp-session-id": ticket})
        return
    with http.in_flight(link, message):
        await answer(exchange, link, message, {})


async def answer(exchange: Exchange, link: Connection, message: Message, headers: dict[str, str]) -> None:
    """Run the message; a call with a progress token is answered as a stream."""
    if message.method == "tools/call" and message.progress_token is not None and http.accepts_stream(exchange.headers):
        await exchange.open_stream(headers)
        frame = await session.handle(link, message)
        await exchange.event(frame or "")
        await exchange.close_stream()
        return
    link.send = ignore
    frame = await session.handle(link, message)
    if frame is None:
        await exchange.empty(202)
        return
    await exchange.json(200, frame, headers)


async def ignore(frame: str) -> None:
    """A plain JSON answer has no place for notifications; the GET stream carries them."""


def revision_of(exchange: Exchange, message: Message) -> str:
    """The revision that the header names; absent is the oldest that we serve."""
    asked = edge.one(exchange.headers, "mcp-protocol-version")
    if not asked or message.method == "initialize":
        return wire.DEFAULT_REVISION
    if asked in wire.REVISIONS:
        return asked
    data = {"supported": list(wire.REVISIONS), "requested": asked[:32]}
    if wire.modern(asked):
        raise WireError(wire.UNSUPPORTED_VERSION, "Unsupported protocol version", message.id, data, http=400)
    raise wire.invalid("unsupported MCP-Protocol-Version", message.id)


async def stream(exchange: Exchange, token: str, who: Who) -> None:
    """The GET stream of a session: notifications, and a comment when nothing happens."""
    if "text/event-stream" not in edge.one(exchange.headers, "accept") and not http.accepts_stream(exchange.headers):
        raise Refusal(406, "not_acceptable", "accept text/event-stream")
    name = tickets.open(edge.one(exchange.headers, "mcp-session-id"), who, None)
    ended = asyncio.Event()

    async def end(reason: BadKey) -> None:
        ended.set()

    watch = Watch(token, name, exchange.event, end, who)
    await exchange.open_stream({})
    hub.add(watch)
    try:
        await exchange.keep_open(ended, KEEP_ALIVE)
    finally:
        hub.drop(watch)
    await exchange.close_stream()


async def delete(exchange: Exchange, token: str, who: Who) -> None:
    """The client is done with the session; again and again is fine."""
    name = tickets.open(edge.one(exchange.headers, "mcp-session-id"), who, None)
    await lanes.run(functools.partial(receipts.closed, name))
    await exchange.empty(204)


async def introspection(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """`/tools`: the caller's visible tools, the same bytes as `tools/list`."""
    exchange = Exchange(scope, receive, send, edge.headers_of(scope))
    try:
        edge.admit(scope, exchange.headers)
        if scope["method"] != "GET":
            raise Refusal(405, "method_not_allowed", "GET")
        token = edge.key_of(exchange.headers)
        body = await lanes.run(lambda: render.listing(render.visible(principals.who_for_key(token))))
        await exchange.json(200, body, {})
    except Refusal as refusal:
        await exchange.refuse(refusal)
    except BadKey as reason:
        body = wire.dumps({"error": "unauthorized", "detail": str(reason)})
        await exchange.json(401, body, NO_KEY)
