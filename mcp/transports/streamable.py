"""Streamable HTTP as a raw ASGI application: POST a message, GET the stream, DELETE the session."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError

from agents import principals
from agents.principals import BadKey
from duduclaw.lib import clock, rate
from mcp import draining, guards, lanes, receipts, render, session, wire
from mcp.connection import Connection
from mcp.policy import Who
from mcp.push import hub
from mcp.transports import edge, http, tickets
from mcp.transports.edge import Refusal
from mcp.transports.http import Exchange, Gone
from mcp.watch import Watch
from mcp.wire import Id, Message, Reply, WireError

log = logging.getLogger(__name__)
KEEP_ALIVE = 15.0  # seconds between comments of an idle stream
NO_KEY = {"www-authenticate": 'Bearer realm="mcp"'}
EXTERNAL = rate.Bucket(60)  # messages a minute of an external key


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal of a request and the session that its ticket opens, "" when it opens none."""

    token: str
    who: Who
    ticket: bool  # whether one was sent
    session: str
    revision: str
    closed: bool  # deleted before

    def named(self, request_id: Id = None) -> str:
        """The session, which must stand. 404 when it does not: unknown, another's, too old or deleted."""
        if not self.session or self.closed:
            raise tickets.not_found(request_id)
        return self.session


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """`/mcp`."""
    exchange = Exchange(scope, receive, send, edge.headers_of(scope))
    methods = {"POST": post, "GET": stream, "DELETE": delete}
    await guarded(exchange, functools.partial(dispatch, exchange, methods))


async def introspection(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """`/tools`: the caller's visible tools, the same bytes as `tools/list`."""
    exchange = Exchange(scope, receive, send, edge.headers_of(scope))
    await guarded(exchange, functools.partial(dispatch, exchange, {"GET": show_tools}))


async def guarded(exchange: Exchange, serve: Callable[[], Awaitable[None]]) -> None:
    """Whatever goes wrong is answered as HTTP wants it."""
    try:
        try:
            await serve()
        except BadKey as reason:
            edge.turn_away(exchange.scope)
            await exchange.json(401, wire.error(None, wire.UNAUTHENTICATED, str(reason)), NO_KEY)
        except WireError as fault:
            await send_reply(exchange, wire.reply_of(fault))
        except DatabaseError as error:
            log.warning("a request could not be proved: %s", error)
            raise edge.unavailable() from None
    except Refusal as refusal:
        await exchange.refuse(refusal)
    except Gone:
        return


async def dispatch(exchange: Exchange, methods: Mapping[str, Callable[..., Awaitable[None]]]) -> None:
    """Edge, key, method."""
    edge.admit(exchange.scope, exchange.headers)
    if draining.now():
        raise restarting()
    token = edge.key_of(exchange.headers)
    sent = edge.one(exchange.headers, "mcp-session-id")
    caller = await lanes.run(functools.partial(prove, token, sent))
    method = methods.get(exchange.scope["method"])
    if method is None:
        allowed = ", ".join(methods)
        raise Refusal(405, "method_not_allowed", f"use {allowed}", (("allow", allowed),))
    await method(exchange, caller)


def prove(token: str | None, ticket: str) -> Caller:
    """In a lane: the principal of a key, and the session of a ticket. Raises `BadKey`."""
    who = principals.who_for_key(token)
    session_name, revision = tickets.opened(ticket, who) if ticket else ("", wire.DEFAULT_REVISION)
    receipt = receipts.read(session_name) if session_name else None
    return Caller(token or "", who, bool(ticket), session_name, revision, closed=bool(receipt and receipt.closed))


def restarting() -> Refusal:
    """Nothing new is begun while the process ends."""
    return Refusal(503, "restarting", "this process is ending; try again", (("retry-after", "1"),))


async def show_tools(exchange: Exchange, caller: Caller) -> None:
    """GET /tools."""
    await exchange.json(200, render.view(caller.who).listing)


async def post(exchange: Exchange, caller: Caller) -> None:
    """One message in, one answer out: JSON, or a stream when there is something to say before."""
    http.negotiate(exchange.headers)
    message = wire.parse(await exchange.body())
    limit(caller.who, message)
    link = connect(exchange, caller, message)
    if draining.now():
        raise restarting()
    with draining.work():
        reply = await attended(exchange, link, message)
        if reply is None:
            await exchange.empty(202)
            return
        if message.method == "initialize" and link.session:
            exchange.extra["mcp-session-id"] = tickets.ticket(link.session, link.revision, caller.who)
        await send_reply(exchange, reply)


def limit(who: Who, message: Message) -> None:
    """External keys have a bucket for HTTP beside those of their calls."""
    if who.kind != "external":
        return
    wait = guards.limiter.check(who.key, "http", clock.now().timestamp(), EXTERNAL)
    if wait is not None:
        data = {"error": "rate_limited", "retry_after": wait}
        raise WireError(wire.RATE_LIMITED, f"Too many requests: try again in {wait} s.", message.id, data, http=429)


def connect(exchange: Exchange, caller: Caller, message: Message) -> Connection:
    """The connection that a message belongs to: a new session's, its session's, or none for a ping."""
    wire.refuse_modern(message)
    asked = edge.one(exchange.headers, "mcp-protocol-version")
    revision = wire.named_revision(asked, caller.revision, message.id)
    link = Connection(caller.token, caller.who.key, "http", exchange.note, revision)
    link.round_task = edge.round_task(exchange.headers)
    if message.method == "initialize":
        link.session = tickets.issue()
    elif caller.ticket:
        link.session = caller.named(message.id)
    elif message.method != "ping":
        raise wire.invalid(tickets.NO_TICKET, message.id)
    return link


async def attended(exchange: Exchange, link: Connection, message: Message) -> Reply | None:
    """Run the message while looking whether the client stays."""
    leaving = asyncio.get_running_loop().create_task(exchange.left())
    leaving.add_done_callback(lambda task: None if task.cancelled() else link.leave())
    try:
        return await session.handle(link, message)
    except BadKey as reason:
        if not exchange.streaming:
            raise
        return Reply(wire.error(message.id, wire.UNAUTHENTICATED, str(reason)), 401)
    finally:
        leaving.cancel()


async def send_reply(exchange: Exchange, reply: Reply) -> None:
    """The end of the stream, when one was begun, else JSON with its status."""
    if exchange.streaming:
        await exchange.event(reply.frame)
        await exchange.close_stream()
        return
    wait = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
    await exchange.json(reply.status, reply.frame, wait)


async def stream(exchange: Exchange, caller: Caller) -> None:
    """The GET stream of a session: notifications, and a comment when nothing happens."""
    if not http.accepts_stream(exchange.headers):
        raise Refusal(406, "not_acceptable", "accept text/event-stream")
    name = standing(caller).named()
    ended = asyncio.Event()

    async def end(code: int, reason: str) -> None:
        ended.set()

    await lanes.run(functools.partial(receipts.listens, name, True), "push")
    await exchange.open_stream()
    watch = Watch(caller.token, name, exchange.event, end, caller.who)
    hub.add(watch)
    try:
        await exchange.keep_open(ended, KEEP_ALIVE)
    finally:
        if hub.drop(watch):
            await lanes.run(functools.partial(receipts.listens, name, False), "push")
    await exchange.close_stream()


def standing(caller: Caller) -> Caller:
    """GET and DELETE are about a session. Raises 400 when no ticket was sent."""
    if not caller.ticket:
        raise Refusal(400, "session_required", tickets.NO_TICKET)
    return caller


async def delete(exchange: Exchange, caller: Caller) -> None:
    """The client is done with the session; again and again is fine."""
    if not (standing(caller).closed and caller.session):
        await lanes.run(functools.partial(receipts.closed, caller.named()))
    await exchange.empty(204)
