"""The official Python client on strings: JSON commands on stdin, JSON answers on stdout. Run with `python -I`.

puppet.py ws|http|stdio ADDRESS MODE [COMMAND ...]   (the key is in DUDUCLAW_MCP_API_KEY)
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from websockets.asyncio.client import connect

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

KEY = os.environ["DUDUCLAW_MCP_API_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}


@asynccontextmanager
async def websocket(url: str) -> AsyncIterator[tuple[Any, Any]]:
    """A transport over memory streams: the library has none for WebSocket any more."""
    to_client, read = anyio.create_memory_object_stream[Any](0)
    write, from_client = anyio.create_memory_object_stream[SessionMessage](0)

    async def down() -> None:
        async with to_client:
            async for frame in socket:
                await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(frame)))

    async def up() -> None:
        async with from_client:
            async for item in from_client:
                await socket.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    options: dict[str, Any] = {"additional_headers": HEADERS, "subprotocols": ["mcp"]}
    async with connect(url, **options) as socket, anyio.create_task_group() as group:
        group.start_soon(down)
        group.start_soon(up)
        yield read, write
        group.cancel_scope.cancel()


@asynccontextmanager
async def http(url: str) -> AsyncIterator[tuple[Any, Any]]:
    """Streamable HTTP with our key."""
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as client:
        async with streamable_http_client(url, http_client=client) as streams:
            yield streams


def stdio(command: list[str]) -> Any:
    """The bridge as this client starts it."""
    keep = {name: os.environ[name] for name in ("DUDUCLAW_MCP_API_KEY", "DUDUCLAW_URL", "PATH")}
    return stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=keep))


class Puppet:
    """Does what it is told, and counts what it hears."""

    def __init__(self) -> None:
        self.changed = 0
        self.news = anyio.Event()

    async def hear(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.changed += 1
            self.news.set()
            self.news = anyio.Event()

    async def obey(self, client: Client, order: dict[str, Any]) -> Any:
        if order["do"] == "list":
            return sorted(tool.name for tool in (await client.list_tools()).tools)
        if order["do"] == "call":
            try:
                result = await client.call_tool(order["name"], order["arguments"])
            except MCPError as error:
                return {"code": error.error.code, "message": error.error.message}
            return {"isError": result.is_error, "structured": result.structured_content}
        with anyio.fail_after(60):
            while self.changed < order["count"]:
                await self.news.wait()
        return self.changed


async def main(kind: str, address: str, mode: str, command: list[str]) -> None:
    puppet = Puppet()
    transport = {"ws": websocket, "http": http}[kind](address) if kind != "stdio" else stdio(command)
    async with Client(transport, mode=mode, message_handler=puppet.hear, read_timeout_seconds=60) as client:
        say({"revision": client.protocol_version, "listChanged": client.server_capabilities.tools.list_changed})
        while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            order = json.loads(line)
            say({"order": order["number"], "answer": await puppet.obey(client, order)})


def say(body: dict[str, Any]) -> None:
    print(json.dumps(body), flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
