"""Official client libraries over real sockets: connect, list, call, and hear of an operator's change."""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.services import CLIENTS, ROOT, need, node, sdk_python
from tests.stack import Stack

pytestmark = pytest.mark.clients
WATCHDOG = 120  # seconds


class Puppet:
    """One client process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.numbers = itertools.count(1)
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.hello = self.read()

    def listen(self) -> None:
        """Its lines, and "" at the end."""
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.lines.put(line)
        self.lines.put("")

    def read(self) -> dict[str, Any]:
        """Its next line."""
        line = self.lines.get(timeout=WATCHDOG)
        if not line:
            self.process.wait(WATCHDOG)
            raise AssertionError(f"the client ended: {self.process.stderr.read()}")  # type: ignore[union-attr]
        body: dict[str, Any] = json.loads(line)
        return body

    def order(self, what: str, **order: Any) -> int:
        """Give an order; answers its number."""
        number = next(self.numbers)
        self.process.stdin.write(json.dumps({"do": what, "number": number, **order}) + "\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        return number

    def answer(self, number: int) -> Any:
        """What came of an order."""
        answer = self.read()
        assert answer["order"] == number
        return answer["answer"]

    def do(self, what: str, **order: Any) -> Any:
        """Give an order and wait for its answer."""
        return self.answer(self.order(what, **order))

    def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool."""
        return self.do("call", name=name, arguments=arguments)


@contextmanager
def puppet(argv: list[str], key: str, url: str) -> Iterator[Puppet]:
    """A client process that ends with the block."""
    env = {"PATH": os.environ["PATH"], "DUDUCLAW_MCP_API_KEY": key, "DUDUCLAW_URL": url}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=CLIENTS) as process:
        try:
            yield Puppet(process)
            process.stdin.close()  # type: ignore[union-attr]
            assert process.wait(WATCHDOG) == 0, process.stderr.read()  # type: ignore[union-attr]
        finally:
            process.kill()


def python(server: Stack, kind: str, mode: str) -> list[str]:
    """The Python client."""
    address = {"ws": server.ws_url, "http": server.mcp_url, "stdio": "-"}[kind]
    bridge = [sys.executable, str(ROOT / "manage.py"), "mcp_stdio"] if kind == "stdio" else []
    script = str(CLIENTS / "py" / "puppet.py")
    return [need("the Python client library", sdk_python()), "-I", script, kind, address, mode, *bridge]


def typescript(server: Stack, kind: str, mode: str) -> list[str]:
    """The TypeScript client, v1."""
    address = {"ws": server.ws_url, "http": server.mcp_url}[kind]
    found = need("Node 22 and the TypeScript client library", node())
    return [found, str(CLIENTS / "ts" / "puppet.mjs"), kind, address]


MATRIX = [
    pytest.param(python, kind, mode, id=f"python-{mode}-{kind}")
    for kind in ("ws", "http", "stdio")
    for mode in ("legacy", "auto")
] + [pytest.param(typescript, kind, "legacy", id=f"typescript-{kind}") for kind in ("ws", "http")]


def patch(server: Stack, **capabilities: Any) -> None:
    """The operator changes what the analyst may do."""
    headers = {"Authorization": f"Bearer {server.keys['operator']}"}
    url = f"{server.url}/api/v1/agents/analyst/"
    httpx.patch(url, json={"capabilities": capabilities}, headers=headers, timeout=WATCHDOG).raise_for_status()


def forget_grants(server: Stack) -> None:
    """Those of the tests before this one."""
    headers = {"Authorization": f"Bearer {server.keys['operator']}"}
    url = f"{server.url}/api/v1/grants/"
    for grant in httpx.get(url, headers=headers, timeout=WATCHDOG).json()["results"]:
        httpx.post(f"{url}{grant['id']}/revoke/", headers=headers, timeout=WATCHDOG)


def approve(server: Stack) -> None:
    """The operator says yes to what waits."""
    headers = {"Authorization": f"Bearer {server.keys['operator']}"}
    url = f"{server.url}/api/v1/approvals/"
    waiting: list[dict[str, Any]] = []
    while not waiting:
        waiting = httpx.get(f"{url}?status=pending", headers=headers, timeout=WATCHDOG).json()["results"]
    body = {"decision": "approve"}
    httpx.post(f"{url}{waiting[0]['id']}/decide/", json=body, headers=headers, timeout=WATCHDOG).raise_for_status()


@pytest.mark.parametrize(("client", "kind", "mode"), MATRIX)
def test_a_client_lists_calls_and_hears_of_changes(
    stack: Callable[[str], Stack], client: Callable[..., list[str]], kind: str, mode: str
) -> None:
    server = stack("sqlite")
    forget_grants(server)
    patch(server, denied_tools=[], scoped_tools=[], allowed_tools=[])
    with puppet(client(server, kind, mode), server.keys["analyst"], server.url) as hand:
        assert hand.hello["listChanged"] is True and hand.hello["revision"] in (None, "2025-11-25")
        first = hand.do("list")
        assert {"tasks_list", "tasks_create", "capability_request", "emergency_stop"} <= set(first)
        made = hand.call("tasks_create", title=f"by {kind} {mode}")
        assert made["isError"] is False
        listed = hand.call("tasks_list", limit=50)
        assert made["structured"]["id"] in [task["id"] for task in listed["structured"]["tasks"]]
        patch(server, scoped_tools=["emergency_stop"])
        assert hand.do("wait_changed", count=1) == 1
        assert set(first) - set(hand.do("list")) == {"emergency_stop"}
        refused = hand.call("emergency_stop", reason="x")
        assert refused["code"] == -32003 and "capability_request" in refused["message"]
        unknown = hand.call("no_such_tool")
        assert unknown["code"] == -32602
        asked = hand.order("call", name="capability_request", arguments={"tool": "emergency_stop", "reason": "need"})
        approve(server)
        assert hand.answer(asked)["isError"] is False
        assert hand.do("wait_changed", count=2) == 2
        assert hand.do("list") == first
        patch(server, denied_tools=["emergency_stop"])
        assert hand.do("wait_changed", count=3) == 3
        assert set(first) - set(hand.do("list")) == {"emergency_stop"}
