"""Streamable HTTP: every row of the table of answers, sessions, streams."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agents.actions.keys import revoke_key
from agents.models import Agent, Key, PlatformSettings
from duduclaw.lib import rate
from mcp import registry, session
from mcp.models import AuditRow, Session
from mcp.transports import edge, streamable, tickets
from tasks.models import Task
from tests.build import Company, company, key
from tests.live import Live
from tests.stack import wait_until
from tests.tools import Door, peek
from tests.wire_clients import HttpPeer, http_client, ws_client

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
MODERN = "io.modelcontextprotocol/protocolVersion"


@pytest.fixture
def people(mcp_server: Live) -> Company:
    return company()


@pytest.fixture
def peer(mcp_server: Live, people: Company) -> Iterator[HttpPeer]:
    """The owner, initialized."""
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        yield client


def post(peer: HttpPeer, body: Any, **headers: str | None) -> httpx.Response:
    """A POST as it stands; a header of None is left out."""
    sent = {"Content-Type": "application/json", **peer.headers}
    sent |= {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
    for name in [name.replace("_", "-").lower() for name, value in headers.items() if value is None]:
        sent = {kept: value for kept, value in sent.items() if kept.lower() != name}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return peer.http.post(peer.url, content=content, headers=sent)


def error_of(response: httpx.Response) -> tuple[int, int, Any]:
    """(status, code, id)."""
    body = response.json()
    return response.status_code, body["error"]["code"], body["id"]


def test_initialize_opens_a_session_that_works_and_survives_a_restart(mcp_server: Live, people: Company) -> None:
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        result = client.initialize("2025-06-18")
        assert result["protocolVersion"] == "2025-06-18"
        assert result["capabilities"] == {"tools": {"listChanged": True}}
        row = Session.objects.get()
        assert (row.transport, row.client, row.revision) == ("http", "test 1", "2025-06-18")
        Session.objects.all().delete()
        assert "tasks_list" in client.names()


@pytest.mark.parametrize("asked", ["2024-11-05", "2099-01-01", "2026-07-28"])
def test_initialize_with_a_revision_that_is_not_served_answers_the_newest_that_is(
    mcp_server: Live, people: Company, asked: str
) -> None:
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        assert client.initialize(asked)["protocolVersion"] == "2025-11-25"


def test_no_key_or_a_bad_one_is_401(mcp_server: Live, people: Company) -> None:
    for header in (None, "", "Basic abc", "Bearer", "Bearer nonsense", f"Token {people.tokens['owner']}"):
        for method in ("POST", "GET", "DELETE"):
            headers = {} if header is None else {"Authorization": header}
            response = httpx.request(method, mcp_server.mcp_url, headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == 'Bearer realm="mcp"'
            assert response.json()["error"]["code"] == -32001


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b'{"id":1,"id":2}', b"\xef\xbb\xbf{}", b"NaN"])
def test_an_unparsable_body_is_400_and_has_no_id(peer: HttpPeer, body: bytes) -> None:
    assert error_of(post(peer, body)) == (400, -32700, None)


@pytest.mark.parametrize(
    "body", [[], [PING], 1, "ping", None, {**PING, "jsonrpc": "1.0"}, {**PING, "id": None}, {**PING, "id": True}]
)
def test_what_is_no_message_is_400_and_nothing_is_done(peer: HttpPeer, body: Any) -> None:
    assert error_of(post(peer, body)) == (400, -32600, None)


def test_notifications_and_answers_of_the_client_are_202_without_a_body(peer: HttpPeer) -> None:
    for body in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/unheard_of"},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "x"}},
    ):
        response = post(peer, body)
        assert (response.status_code, response.content) == (202, b"")


def test_unknown_methods_and_bad_params_are_200_with_their_code(peer: HttpPeer) -> None:
    for method, params, code in (
        ("tools/unheard_of", {}, -32601),
        ("server/discover", {}, -32601),
        ("resources/list", {}, -32601),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": 5}, -32602),
        ("tools/call", {"name": "tasks_list", "arguments": []}, -32602),
        ("tools/call", {"name": "no_such_tool"}, -32602),
        ("tools/list", {"cursor": "zzz"}, -32602),
    ):
        body = {"jsonrpc": "2.0", "id": "a1", "method": method, "params": params}
        assert error_of(post(peer, body)) == (200, code, "a1"), method


def test_P01_sessions_stale_missing_and_fresh(peer: HttpPeer) -> None:
    assert error_of(post(peer, LIST, Mcp_Session_Id="dead-0001")) == (404, -32001, 7)
    assert error_of(post(peer, LIST, Mcp_Session_Id=None)) == (400, -32600, 7)
    fresh = post(peer, {**PING, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}},
        Mcp_Session_Id=None)  # fmt: skip
    assert fresh.status_code == 200
    answer = post(peer, LIST, Mcp_Session_Id=fresh.headers["mcp-session-id"])
    assert answer.json()["result"]["tools"]


def test_a_session_belongs_to_its_key(mcp_server: Live, people: Company, peer: HttpPeer) -> None:
    foreign = {"Authorization": f"Bearer {people.tokens['colleague']}"}
    assert error_of(post(peer, LIST, **foreign)) == (404, -32001, 7)
    for method in ("GET", "DELETE"):
        headers = {**peer.headers, **foreign}
        assert peer.http.request(method, peer.url, headers=headers).status_code == 404


def test_a_session_ends_after_its_longest_life(peer: HttpPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "LIFE", -1)
    assert error_of(post(peer, LIST)) == (404, -32001, 7)


def test_ping_needs_no_session_and_two_of_the_same_id_do_not_meet(peer: HttpPeer) -> None:
    assert post(peer, PING, Mcp_Session_Id=None).json() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_delete_is_idempotent_and_ends_the_session(peer: HttpPeer) -> None:
    for _ in range(2):
        response = peer.http.delete(peer.url, headers=peer.headers)
        assert (response.status_code, response.content) == (204, b"")
    assert error_of(post(peer, LIST)) == (404, -32001, 7)
    assert peer.http.get(peer.url, headers=peer.headers).status_code == 404
    missing = {name: value for name, value in peer.headers.items() if name != "Mcp-Session-Id"}
    assert peer.http.delete(peer.url, headers=missing).status_code == 400
    assert peer.http.get(peer.url, headers=missing).status_code == 400


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_405(peer: HttpPeer, method: str) -> None:
    response = peer.http.request(method, peer.url, headers=peer.headers)
    assert (response.status_code, response.headers["allow"]) == (405, "POST, GET, DELETE")


def test_accept_content_type_and_size(peer: HttpPeer) -> None:
    assert post(peer, PING, Accept="text/html").status_code == 406
    assert post(peer, PING, Accept="application/json").status_code == 200
    assert post(peer, PING, Accept="*/*").status_code == 200
    assert post(peer, PING, Content_Type="text/plain").status_code == 415
    assert post(peer, PING, Content_Type="application/json; charset=utf-8").status_code == 200
    padded = json.dumps(PING).encode()
    assert post(peer, padded + b" " * (1024 * 1024 - len(padded))).status_code == 200
    assert post(peer, padded + b" " * (1024 * 1024 + 1 - len(padded))).status_code == 413
    headers = {**peer.headers, "Content-Type": "application/json"}
    chunks = (b" " * 65_536 for _ in range(17))
    assert peer.http.post(peer.url, content=chunks, headers=headers).status_code == 413
    assert peer.http.get(peer.url, headers={**peer.headers, "Accept": "application/json"}).status_code == 406


def test_revisions_by_header(peer: HttpPeer) -> None:
    for header, expected in (
        ("2025-06-18", (200, None)),
        ("2025-11-25", (200, None)),
        (None, (200, None)),
        ("2020-01-01", (400, -32600)),
        ("2026-07-28", (400, -32022)),
    ):
        answer = post(peer, PING, MCP_Protocol_Version=header)
        assert (answer.status_code, answer.json().get("error", {}).get("code")) == expected
    assert answer.json()["error"]["data"] == {"supported": ["2025-06-18", "2025-11-25"], "requested": "2026-07-28"}
    modern = {**PING, "method": "server/discover", "params": {"_meta": {MODERN: "2026-07-28"}}}
    for session_id in (None, peer.headers["Mcp-Session-Id"]):
        answer = post(peer, modern, Mcp_Session_Id=session_id, MCP_Protocol_Version=None)
        assert error_of(answer) == (400, -32022, 7)


def test_doubled_headers_are_refused(peer: HttpPeer) -> None:
    for name in ("Authorization", "Mcp-Session-Id", "MCP-Protocol-Version", "Content-Type"):
        headers = [*{"Content-Type": "application/json", **peer.headers}.items(), (name, "again")]
        response = peer.http.post(peer.url, content=json.dumps(PING), headers=headers)
        assert (response.status_code, response.json()["error"]) == (400, "duplicate_header")


def test_well_known_addresses_are_json_404(mcp_server: Live) -> None:
    for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        response = httpx.get(f"{mcp_server.url}/.well-known/{path}")
        assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_introspection_has_the_bytes_of_the_list(mcp_server: Live, peer: HttpPeer) -> None:
    url, headers = f"{mcp_server.url}/tools", {"Authorization": peer.headers["Authorization"]}
    shown = httpx.get(url, headers=headers)
    listed = post(peer, LIST)
    assert listed.content == b'{"jsonrpc":"2.0","id":7,"result":' + shown.content + b"}"
    assert httpx.post(url, headers=headers).headers["allow"] == "GET"


def test_strangers_are_counted_by_address_and_a_good_key_still_opens(
    mcp_server: Live, peer: HttpPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "strangers", rate.Limiter({"unauthenticated": rate.Bucket(1, 3)}))
    answers = [peer.http.post(peer.url) for _ in range(4)]
    assert (answers[0].status_code, answers[-1].status_code) == (401, 429)
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert post(peer, PING).status_code == 200
    assert httpx.get(f"{mcp_server.url}/tools").status_code == 429


def test_a_rate_refusal_is_429_with_the_seconds(mcp_server: Live) -> None:
    people = company()
    PlatformSettings.objects.system().update(rate={"keys": {"read": 1, "write": 1, "burst": 1}})
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        call = {**LIST, "method": "tools/call", "params": {"name": "tasks_list"}}
        assert post(client, call).status_code == 200
        limited = post(client, call)
        assert error_of(limited) == (429, -32029, 7)
        assert 1 <= int(limited.headers["retry-after"]) <= 60


def test_an_external_key_has_a_bucket_for_http(mcp_server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable, "EXTERNAL", rate.Bucket(60, 3))
    people = company()
    token = key(people.space, "external", client_id="client", scopes_held=["issues:read"])[1]
    with http_client(mcp_server.url, token) as client:
        client.initialize()
        assert [post(client, PING).status_code for _ in range(2)] == [200, 429]
    with ws_client(mcp_server.url, token) as other:
        assert other.request("ping")["result"] == {}


def test_progress_notes_come_in_the_answers_stream(peer: HttpPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PROGRESS", 0.05)
    door = Door()
    with registry.temporarily(door.tool(slow=True)):
        number = peer.begin_call("wait_inside", {"text": "x"}, token="p1")
        peer.wait(lambda: peer.notes("notifications/progress") >= 3, "progress")
        door.open.set()
        assert peer.answer(number)["result"]["isError"] is False
    notes = [frame["params"] for frame in peer.frames if frame.get("method") == "notifications/progress"]
    assert [note["progress"] for note in notes] == list(range(1, len(notes) + 1))
    assert {note["progressToken"] for note in notes} == {"p1"}
    assert peer.frames[-1]["id"] == number


def test_a_client_that_reads_no_streams_gets_json_however_long_it_takes(
    peer: HttpPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PROGRESS", 0.01)
    monkeypatch.setitem(peer.headers, "Accept", "application/json")
    door = Door()
    with registry.temporarily(door.tool(slow=True)):
        number = peer.begin_call("wait_inside", token="p1")
        door.wait_entered()
        door.open.set()
        assert peer.answer(number)["result"]["isError"] is False
    assert peer.notes("notifications/progress") == 0


def test_a_cancelled_request_gets_no_frame_and_one_row(peer: HttpPeer) -> None:
    door = Door()
    with registry.temporarily(door.tool(slow=True, read_only=True)):
        number = peer.begin_call("wait_inside")
        door.wait_entered()
        peer.notify("notifications/cancelled", {"requestId": number})
        door.open.set()
        wait_until(lambda: peer.statuses.count(202) == 3, "the empty answers")
    assert [row.outcome for row in AuditRow.objects.filter(tool="wait_inside")] == ["cancelled"]
    assert peer.answered(number) is None


def test_the_stream_comments_when_nothing_happens(peer: HttpPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable, "KEEP_ALIVE", 0.02)
    headers = {**peer.headers, "Accept": "text/event-stream"}
    with httpx.stream("GET", peer.url, headers=headers) as response:
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["x-accel-buffering"] == "no"
        lines = response.iter_lines()
        assert [next(lines) for _ in range(6)] == [": open", "", ": keep-alive", "", ": keep-alive", ""]
    wait_until(lambda: not Session.objects.get().listening, "the end of the stream")


def test_W01_a_revoked_key_ends_streams_and_the_next_request_is_401(
    mcp_server: Live, people: Company, peer: HttpPeer
) -> None:
    second = key(people.space, "agent", agent=people.owner)[1]
    with http_client(mcp_server.url, second) as other:
        other.initialize()
        assert peer.listen() == other.listen() == 200
        revoke_key(Key.objects.system().get(prefix=people.tokens["owner"][:17]), by=people.who("operator"))
        assert peer.wait_ended() == "stream closed"
        create = {**LIST, "method": "tools/call", "params": {"name": "tasks_create", "arguments": {"title": "x"}}}
        assert post(peer, create).status_code == 401
        assert Task.objects.system().count() == 0
        assert post(other, create).json()["result"]["isError"] is False
        Agent.objects.system().filter(pk=people.owner.pk).update(status="removed")
        assert other.wait_ended() == "stream closed"
        assert post(other, create).status_code == 401
    assert Task.objects.system().count() == 1


def test_a_client_that_leaves_in_a_call_cancels_nothing(peer: HttpPeer) -> None:
    door = Door()
    with registry.temporarily(door.tool(slow=True)):
        peer.call_and_leave("wait_inside", {})
        door.wait_entered()
        door.open.set()
        row = wait_until(lambda: AuditRow.objects.filter(tool="wait_inside").first(), "the row")
    assert row.outcome == "ok"


def test_arguments_omitted_or_null_are_none(peer: HttpPeer) -> None:
    with registry.temporarily(peek()):
        for params in ({"name": "peek"}, {"name": "peek", "arguments": None}, {"name": "peek", "arguments": {}}):
            answer = post(peer, {**LIST, "method": "tools/call", "params": params}).json()
            assert answer["result"]["structuredContent"] == {"limit": 20, "task_id": ""}
