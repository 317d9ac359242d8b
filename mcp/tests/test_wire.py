"""Frames: what is a message, what is none, and that nothing happens for the latter."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp import registry, wire
from mcp.models import AuditRow
from mcp.wire import WireError
from tasks.models import Task
from tests.build import Company, company
from tests.live import Live
from tests.tools import peek
from tests.wire_clients import CLIENTS, HttpPeer, Peer

CREATE = {"name": "tasks_create", "arguments": {"title": "x"}}


@pytest.fixture
def people(mcp_server: Live) -> Company:
    return company()


@pytest.fixture(params=CLIENTS)
def peer(request: pytest.FixtureRequest, mcp_server: Live, people: Company) -> Iterator[Peer]:
    """The owner over each transport, initialized."""
    with CLIENTS[request.param](mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        yield client


def fault(peer: Peer, frame: str) -> dict[str, Any]:
    """The error that answers a frame which has no usable id."""
    before = len(peer.frames)
    peer.send_raw(frame)
    peer.wait(lambda: len(peer.frames) > before, "the error")
    return peer.frames[before]


def test_P02_an_id_that_is_none_is_an_error_and_no_id_is_a_notification(peer: Peer) -> None:
    bad: Any
    for bad in (None, {}, [1], True, False):
        frame = json.dumps({"jsonrpc": "2.0", "id": bad, "method": "tools/call", "params": CREATE})
        answer = fault(peer, frame)
        assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    peer.notify("tools/call", CREATE)
    assert peer.request("ping")["result"] == {}
    assert Task.objects.system().count() == 0 and AuditRow.objects.count() == 0
    assert sum("id" in frame and frame["id"] is None for frame in peer.frames) == 5


def test_ids_come_back_as_they_were(peer: Peer) -> None:
    for number in (0, -1, 1.5, "", "a1", "0", 2**70, "ümläut \u2028"):
        peer.begin("ping", number=number)
        frame = peer.answer(number)
        assert (frame["id"], type(frame["id"])) == (number, type(number))


def test_P03_a_name_that_no_tool_has_is_an_error_and_a_hidden_one_meets_its_gate(peer: Peer) -> None:
    hidden = peek("search_issues", switch="github")
    with registry.temporarily(hidden):
        for name in ("no_such_tool", ""):
            peer.begin("tools/call", {"name": name}, number=f"a-{name}")
            frame = peer.answer(f"a-{name}")
            assert frame["error"]["code"] == -32602 and "result" not in frame
            assert frame["error"]["message"] == f"Unknown tool: {name}"
        refusal = peer.call("search_issues")["error"]
    assert (refusal["code"], refusal["data"]["error"]) == (-32003, "github_capability_missing")
    assert "GitHub" in refusal["message"]
    rows = AuditRow.objects.order_by("id").values_list("tool", "outcome", "reason")
    assert [row[1:] for row in rows] == [
        ("invalid", "unknown_tool"),
        ("invalid", "unknown_tool"),
        ("denied", "github_capability_missing"),
    ]


def test_T08_deep_texts_are_refused_by_depth(peer: Peer) -> None:
    for opened in ("[", '{"a":', "[" * 99 + '"'):
        answer = fault(peer, opened * (100_000 // len(opened)))
        assert answer["error"]["code"] == -32700 and answer["id"] is None
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"[" * 65}{"]" * 65}}}'
    assert fault(peer, body)["error"]["code"] == -32700
    assert peer.request("ping")["result"] == {}


def test_T08_brackets_inside_a_string_are_text(peer: Peer) -> None:
    with registry.temporarily(peek()):
        deep = "[" * 100_000
        result = peer.call("peek", {"task_id": deep})["result"]
    assert result["structuredContent"].get("truncated") or result["structuredContent"]["task_id"] == deep


def test_an_error_never_repeats_a_key(peer: Peer, people: Company) -> None:
    secret = people.tokens["owner"]
    for method, params in (
        (secret, {}),
        ("tools/call", {"name": secret}),
        ("tools/call", {"name": "tasks_list", "arguments": {secret: 1}}),
        ("tools/call", {"name": "tasks_list", "arguments": {"limit": secret}}),
        ("tools/list", {"cursor": secret}),
        ("initialize", {secret: secret}),
    ):
        frame = peer.request(method, params)
        assert "error" in frame and secret not in json.dumps(frame)
    assert secret not in json.dumps(fault(peer, f'{{"{secret}":1,"{secret}":2}}'))
    assert not [row for row in AuditRow.objects.values_list() if secret in str(row)]


def test_a_message_is_masked_and_one_line(mcp_server: Live) -> None:
    frame = wire.error(1, -32602, "Unknown tool: ddc_live_0123456789abcdef\u2028")
    assert "0123456789abcdef" not in frame and "\u2028" not in frame
    assert json.loads(frame)["error"]["message"] == "Unknown tool: [redacted]\u2028"


MEMBERS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.just("2.0")
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(MEMBERS, inner), max_leaves=8)


@given(VALUES)
def test_whatever_is_no_message_is_a_fault_and_never_an_exception(body: Any) -> None:
    try:
        message = wire.parse(json.dumps(body))
    except WireError as error:
        assert error.code in (wire.PARSE_ERROR, wire.INVALID_REQUEST)
        return
    assert isinstance(body, dict) and body["jsonrpc"] == "2.0"
    assert message.is_response or message.method == body["method"]
    assert message.is_request == ("id" in body and not message.is_response)


@given(st.binary())
def test_bytes_are_a_message_or_a_fault(data: bytes) -> None:
    with pytest.raises(WireError):
        wire.parse(data)


def test_http_statuses_are_recorded(mcp_server: Live, people: Company) -> None:
    with CLIENTS["http"](mcp_server.url, people.tokens["owner"]) as client:
        assert isinstance(client, HttpPeer)
        client.initialize()
        assert client.statuses == [200, 202]
