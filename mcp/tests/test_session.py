"""The method table over every transport: what is listed is what may be called, and refusals are the gates' own."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agents.models import Capabilities
from agents.principals import who_for_key
from mcp import policy, refusals, registry
from mcp.models import AuditRow
from mcp.registry import Tool
from tests.build import Company, company, key
from tests.live import Live
from tests.tools import peek, send_message
from tests.wire_clients import CLIENTS

# A tool for every filter; those that the seed names stand in for tools that come later.
HIDDEN: dict[str, dict[str, Any]] = {
    "memory_search": {"scope": "memory:read"},
    "memory_store": {"scope": "memory:write"},
    "github_search": {"switch": "github"},
    "gmail_search": {"switch": "google_workspace"},
    "os_notify": {"switch": "os_native"},
    "responsibility_list": {"switch": "responsibilities", "process_agent": True},
    "decide": {"human_only": True},
    "scoped_one": {},
    "plain_one": {},
    "permitted_one": {"permission": "can_create_agents"},
}


def catalogue() -> list[Tool]:
    """The test tools."""
    made = []
    for name, flags in HIDDEN.items():
        rest = dict(flags)
        scope = rest.pop("scope", "admin")
        base = peek(name, **rest)
        made.append(registry.build(base.function, name, "tests", scope, {"read_only": True, **rest}))
    return made


@pytest.fixture
def people(mcp_server: Live) -> Iterator[Company]:
    with registry.temporarily(*catalogue()):
        yield company()


@pytest.fixture(params=CLIENTS)
def transport(request: pytest.FixtureRequest) -> Any:
    return CLIENTS[request.param]


def past_the_gates(frame: dict[str, Any]) -> bool:
    """Whether a call met no gate: a result, bad arguments or a flag that is judged per call."""
    error = frame.get("error")
    return error is None or error["code"] == -32602 or not error["data"]["gate"].startswith("G")


def test_V01_the_three_lists_are_one_and_say_what_may_be_called(mcp_server: Live, people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=["memory_*"], scoped_tools=["scoped_one"])
    names = [tool.name for tool in registry.every()]
    lists = []
    for transport in CLIENTS.values():
        with transport(mcp_server.url, people.tokens["owner"]) as client:
            client.initialize()
            listed = client.names()
            called = {name for name in names if past_the_gates(client.call(name))}
            assert listed == called
            lists.append(listed)
    assert lists[0] == lists[1] == lists[2]
    assert {"plain_one", "permitted_one", "tasks_list"} <= lists[0]
    assert not {"memory_search", "github_search", "decide", "scoped_one", "os_notify"} & lists[0]
    assert AuditRow.objects.count() == 3 * len(names)


def test_T16_a_hidden_tool_answers_with_its_gates_own_refusal(
    mcp_server: Live, people: Company, transport: Any
) -> None:
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=["memory_*"], scoped_tools=["scoped_one"])
    people.tokens["external"] = key(people.space, "external", client_id="client", scopes_held=["memory:read"])[1]
    for person in ("owner", "operator", "external"):
        who = who_for_key(people.tokens[person])
        with transport(mcp_server.url, people.tokens[person]) as client:
            client.initialize()
            for tool in registry.every():
                refusal = policy.closed(tool, who)
                if refusal is None:
                    continue
                error = client.call(tool.name)["error"]
                assert error == {
                    "code": refusal.code,
                    "message": refusal.text,
                    "data": {"error": refusal.error, "gate": refusal.gate, "tool": tool.name},
                }
            missing = client.call("no_such_tool")["error"]
            assert (missing["code"], missing["message"]) == (-32602, refusals.unknown_tool("no_such_tool"))


def test_P05_one_page_the_same_twice_and_no_other_cursor(mcp_server: Live, people: Company, transport: Any) -> None:
    caps = {name: True for name in ("os_native", "recording", "codrive", "computer_use", "fork")}
    Capabilities.objects.filter(agent=people.owner).update(**caps)
    with transport(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        first, second = (client.request("tools/list")["result"] for _ in range(2))
        assert first == second and "nextCursor" not in first
        names = [tool["name"] for tool in first["tools"]]
        assert names == sorted(set(names)) and "os_notify" in names
        assert client.request("tools/list", {"cursor": "zzz"})["error"]["code"] == -32602
        assert client.request("tools/list", {"cursor": ""})["error"]["code"] == -32602


def test_every_entry_is_whole(mcp_server: Live, people: Company) -> None:
    with CLIENTS["ws"](mcp_server.url, people.tokens["operator"]) as client:
        for tool in client.tools():
            assert set(tool) == {"name", "description", "inputSchema", "annotations", "_meta"}
            assert tool["inputSchema"]["type"] == "object" and "$ref" not in json.dumps(tool["inputSchema"])
            assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
            assert set(tool["_meta"]) >= {"duduclaw/scope", "duduclaw/family", "duduclaw/gate", "duduclaw/docs"}


TAKEN = [("5", 5), (3.0, 3), (1e2, 100), (0, 0), ("-7", -7), (5, 5)]
REFUSED = [True, "5abc", " 5 ", "1e3", "\uff11\uff12", 3.5, "", [], {}, "5.0"]


def test_P08_numbers_may_come_as_digits_and_strings_stay(mcp_server: Live, people: Company, transport: Any) -> None:
    with registry.temporarily(peek()), transport(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        for sent, arrives in TAKEN:
            result = client.call("peek", {"limit": sent, "task_id": "00713"})["result"]
            assert result["structuredContent"] == {"limit": arrives, "task_id": "00713"}, sent
        for sent in REFUSED:
            error = client.call("peek", {"limit": sent})["error"]
            assert error["code"] == -32602 and error["data"]["parameter"] == "limit", sent
            assert "limit" in error["message"]
        raw = '{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"peek","arguments":{"limit":1e2}}}'
        client.send_raw(raw)
        assert client.answer("e")["result"]["structuredContent"]["limit"] == 100


def test_lists_and_pings_need_no_handshake_on_sockets(mcp_server: Live, people: Company) -> None:
    for name in ("ws", "stdio"):
        with CLIENTS[name](mcp_server.url, people.tokens["owner"]) as client:
            assert client.request("ping")["result"] == {}
            assert "tasks_list" in client.names()


def test_the_era_is_judged_a_message(mcp_server: Live, people: Company) -> None:
    modern = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    for name in ("ws", "stdio"):
        with CLIENTS[name](mcp_server.url, people.tokens["owner"]) as client:
            refused = client.request("server/discover", modern)["error"]
            assert refused["code"] == -32022
            assert refused["data"] == {"supported": ["2025-06-18", "2025-11-25"], "requested": "2026-07-28"}
            assert client.request("server/discover")["error"]["code"] == -32601
            assert client.initialize()["protocolVersion"] == "2025-11-25"
            assert client.request("tools/list", modern)["error"]["code"] == -32022
            assert client.initialize("2025-06-18")["protocolVersion"] == "2025-06-18"
            assert "tasks_list" in client.names()


def test_one_row_a_call_and_none_for_the_rest(mcp_server: Live, people: Company, transport: Any) -> None:
    with registry.temporarily(send_message()), transport(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        client.names()
        client.request("ping")
        client.request("nothing/here")
        for name in ("tasks_list", "send_message", "nothing", "decide"):
            client.call(name)
    rows = list(AuditRow.objects.order_by("id").values_list("tool", "outcome"))
    assert rows == [("tasks_list", "ok"), ("send_message", "invalid"), ("nothing", "invalid"), ("decide", "denied")]
