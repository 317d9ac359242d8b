"""The walk of `demo`: what an agent may, may not, asks for and then may, over the running server's own doors."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from threading import Event
from typing import Any
from urllib.parse import urlencode, urlsplit

PATIENCE = 60.0  # seconds for one answer; a parked call waits up to 45
POLL = 0.2
REVISION = "2025-06-18"


class WalkFailed(Exception):
    """A step did not go as the product promises; the text says which."""


@dataclass(frozen=True)
class Step:
    """One line of the walk: who did what, and what came of it."""

    who: str
    does: str
    outcome: str
    detail: str

    def as_json(self) -> dict[str, str]:
        """For `--json`."""
        return asdict(self)


@dataclass(frozen=True)
class Door:
    """One principal's way in: its key, over REST and over MCP."""

    url: str
    key: str

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], str]:
        """One HTTP exchange -> (status, headers in lower case, text)."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        sent = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **headers}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            kept = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, kept, answer.read().decode()
        except (OSError, HTTPException) as error:
            raise WalkFailed(f"no answer from {self.url}: {error}; start the server with `make run`") from error
        finally:
            connection.close()

    def rest(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """A REST call that must succeed -> its JSON."""
        suffix = f"?{urlencode(query)}" if query else ""
        status, _, text = self.send(method, f"/api/v1/{path}{suffix}", body)
        if status >= 400:
            raise WalkFailed(f"{method} /api/v1/{path} answered {status}: {text[:300]}")
        return json.loads(text) if text else None


class Agent:
    """An MCP session over HTTP."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._session: dict[str, str] = {}
        self._last = 0
        client = {"name": "demo", "version": "1"}
        opened = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        _, headers, _ = self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opened})
        self._session = {"Mcp-Session-Id": headers.get("mcp-session-id", ""), "MCP-Protocol-Version": REVISION}
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _post(self, message: dict[str, Any]) -> tuple[int, dict[str, str], str]:
        accept = {"Accept": "application/json, text/event-stream", **self._session}
        status, headers, text = self._door.send("POST", "/mcp", message, **accept)
        if status >= 400:
            raise WalkFailed(f"{message['method']} answered {status}: {text[:300]}")
        return status, headers, text

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A request -> the whole JSON-RPC answer."""
        self._last += 1
        _, _, text = self._post({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(text)
        return answer

    def tools(self) -> set[str]:
        """The names that it sees."""
        return {tool["name"] for tool in self.ask("tools/list")["result"]["tools"]}

    def call(self, name: str, **arguments: Any) -> tuple[str, str]:
        """-> (`ok`, text), (`refused`, text) from a tool, or (error class, text) from a gate."""
        answer = self.ask("tools/call", name=name, arguments=arguments)
        if "error" in answer:
            return answer["error"]["data"]["error"], answer["error"]["message"]
        result = answer["result"]
        return "refused" if result.get("isError") else "ok", result["content"][0]["text"]


def expect(found: bool, what: str) -> None:
    """Stop the walk when a promise does not hold."""
    if not found:
        raise WalkFailed(what)


def wait_for(look: Callable[[], Any], what: str) -> Any:
    """The first truthy answer of `look`."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := look():
            return found
        Event().wait(POLL)
    raise WalkFailed(f"waited {PATIENCE:.0f} s for {what}")


def walk(operator: Door, agent: str, tool: str, arguments: dict[str, Any]) -> Iterator[Step]:
    """Walk `agent` through a tool that stands on its scoped list. What the walk opened it closes again."""
    made = operator.rest("POST", "keys/", {"kind": "agent", "agent": agent, "label": "demo"})
    try:
        session = Agent(Door(operator.url, made["key"]))
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        yield from before(session, agent, tool, arguments)
        yield from grant(operator, session, agent, tool)
        yield from after(session, agent, tool, arguments)
        yield from record(operator, agent, since)
    finally:
        close(operator, agent, tool, made["id"])


def before(session: Agent, agent: str, tool: str, arguments: dict[str, Any]) -> Iterator[Step]:
    """An allowed read and a refused write."""
    seen = session.tools()
    yield Step(agent, "tools/list", "ok", f"{len(seen)} tools; {tool} is not among them")
    expect(tool not in seen, f"{agent} sees {tool} before it was granted")
    outcome, text = session.call("tasks_list")
    yield Step(agent, "tasks_list", outcome, f"{len(text)} characters")
    expect(outcome == "ok", f"tasks_list was refused: {text}")
    outcome, text = session.call(tool, **arguments)
    yield Step(agent, tool, outcome, text)
    expect(outcome == "capability_grant_missing", f"{tool} answered {outcome}")


def grant(operator: Door, session: Agent, agent: str, tool: str) -> Iterator[Step]:
    """The agent asks and waits; a person decides meanwhile."""
    yield Step(agent, "capability_request", "waits", f"asks for {tool}")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(session.call, "capability_request", tool=tool, reason="The demo asks for it.")

        def pending() -> Any:
            if asked.done():
                raise WalkFailed(f"capability_request answered {asked.result()}")
            rows = operator.rest("GET", "approvals/", status="pending")["results"]
            return next((row for row in rows if (row["agent"], row["tool"]) == (agent, tool)), None)

        question = wait_for(pending, "the question to reach the operator")
        operator.rest("POST", f"approvals/{question['id']}/decide/", {"decision": "approve", "note": "demo"})
        yield Step("operator", "approve", "ok", f"approval {question['id']}")
        outcome, text = asked.result(timeout=PATIENCE)
    yield Step(agent, "capability_request", outcome, text)
    expect(outcome == "ok", f"capability_request answered {outcome}: {text}")


def after(session: Agent, agent: str, tool: str, arguments: dict[str, Any]) -> Iterator[Step]:
    """The same list and the same call, now open."""
    seen = session.tools()
    yield Step(agent, "tools/list", "ok", f"{len(seen)} tools; {tool} is among them")
    expect(tool in seen, f"{agent} does not see {tool} although it was granted")
    outcome, text = session.call(tool, **arguments)
    yield Step(agent, tool, outcome, text)
    expect(outcome == "ok", f"{tool} answered {outcome}: {text}")


def record(operator: Door, agent: str, since: str) -> Iterator[Step]:
    """What the audit kept of it, oldest first."""
    rows = operator.rest("GET", "audit/", agent=agent, since=since)["results"]
    for row in reversed(rows):
        detail = f"{row['timestamp']} {row['transport']} {row['ms']} ms {row['reason']}".rstrip()
        yield Step("audit", row["tool"], row["outcome"], detail)
    expect({"ok", "denied"} <= {row["outcome"] for row in rows}, "the audit lacks a row of the walk")


def close(operator: Door, agent: str, tool: str, key: str) -> None:
    """Take back the grant and the key."""
    for row in operator.rest("GET", "grants/")["results"]:
        if (row["agent"], row["tool"]) == (agent, tool) and not row.get("revoked_at"):
            operator.rest("POST", f"grants/{row['id']}/revoke/", {})
    operator.rest("DELETE", f"keys/{key}/")
