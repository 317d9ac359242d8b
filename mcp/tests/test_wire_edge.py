"""The door that both transports share: Host, Origin and key are judged before any tool code, and alike."""

import hmac
import json
import socket
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agents import principals
from agents.models import Key
from duduclaw import asgi
from mcp import registry
from mcp.models import AuditRow, Session
from tasks.models import Task
from tests.build import Company, company
from tests.live import Live
from tests.tools import peek
from tests.wire_clients import http_client, ws_client

LIST = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})
ALLOWED = "https://ops.example.com"


@pytest.fixture
def people(mcp_server: Live) -> Company:
    return company()


def over_http(live: Live, headers: dict[str, str], query: str = "") -> tuple[int, str]:
    """(status, error) of a POST that carries a valid ping."""
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    response = httpx.post(f"{live.mcp_url}{query}", content=body, headers=sent)
    return response.status_code, response.json().get("error", "")


def over_ws(live: Live, headers: dict[str, str], query: str = "") -> tuple[int, str]:
    """(status, error) of a handshake; 200 when it was accepted and answers a ping."""
    extra = {name: value for name, value in headers.items() if name != "Host"}
    try:
        with connect(f"{live.ws_url}{query}", additional_headers=extra) as link:
            link.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}))
            assert json.loads(link.recv())["result"] == {}
        return 200, ""
    except InvalidStatus as refusal:
        return refusal.response.status_code, json.loads(refusal.response.body or b"{}").get("error", "")


WAYS = pytest.mark.parametrize("way", [over_http, over_ws])


@WAYS
def test_P07_foreign_origins_are_403_before_any_tool_code(
    mcp_server: Live, people: Company, settings: Any, way: Any
) -> None:
    settings.ALLOWED_ORIGINS = [ALLOWED]
    key = {"Authorization": f"Bearer {people.tokens['owner']}"}
    assert way(mcp_server, key) == (200, "")
    for good in (ALLOWED, mcp_server.url, mcp_server.url.replace("127.0.0.1", "localhost")):
        assert way(mcp_server, {**key, "Origin": good}) == (200, ""), good
    for bad in (
        "https://evil.example",
        "null",
        "https://ops.example.com.evil.example",
        "https://ops.example.com:444",
        "http://ops.example.com",
        "https://ops.example.com@evil.example",
        "https://OPS.example.com.",
        f"{mcp_server.url}0",
        "",
    ):
        assert way(mcp_server, {**key, "Origin": bad}) == (403, "bad_origin"), bad
        assert way(mcp_server, {"Origin": bad}) == (403, "bad_origin"), bad
    assert AuditRow.objects.count() == 0


def test_a_foreign_host_is_421(mcp_server: Live, people: Company) -> None:
    key = {"Authorization": f"Bearer {people.tokens['owner']}"}
    for host in ("evil.test", "127.0.0.1.evil.test", "evil.test:80"):
        assert over_http(mcp_server, {**key, "Host": host}) == (421, "bad_host")
        assert handshake(mcp_server, f"Host: {host}\r\nAuthorization: {key['Authorization']}\r\n").startswith(
            "HTTP/1.1 421"
        )
    forwarded = {**key, "X-Forwarded-Host": "evil.test", "Forwarded": "host=evil.test"}
    assert over_http(mcp_server, forwarded) == (200, "")


def handshake(live: Live, lines: str) -> str:
    """The first bytes that answer a handshake of these header lines."""
    host, port = live.url.removeprefix("http://").split(":")
    request = (
        f"GET /ws/mcp/ HTTP/1.1\r\n{lines}Upgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as link:
        link.sendall(request.encode())
        return link.recv(4096).decode()


@WAYS
def test_T05_a_key_in_the_address_is_400_and_stands_in_no_log(
    mcp_server: Live, people: Company, way: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = people.tokens["owner"]
    for query in (f"?api_key={secret}", f"?x={secret}", f"?token={secret}", f"?a=b&KEY={secret}", "?access_token=x"):
        assert way(mcp_server, {}, query) == (400, "key_in_url")
        assert way(mcp_server, {"Authorization": f"Bearer {secret}"}, query) == (400, "key_in_url")
    ours = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore", "websockets"))]
    assert not [record for record in ours if secret in record.getMessage()]
    assert not [row for row in AuditRow.objects.values_list() if secret in str(row)]


@WAYS
def test_T06_one_comparison_for_known_and_unknown_prefixes(
    mcp_server: Live, people: Company, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []
    real = hmac.compare_digest

    def compare(left: str, right: str) -> bool:
        compared.append((left, right))
        return real(left, right)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    good = people.tokens["owner"]
    counts = []
    for token in (flipped(good, 17), flipped(good, -1), "ddc_test_" + "0" * 32):
        compared.clear()
        assert way(mcp_server, {"Authorization": f"Bearer {token}"})[0] in (401, 403)
        counts.append(len([pair for pair in compared if len(pair[0]) == 64 and len(pair[1]) == 64]))
    assert counts == [1, 1, 1]
    assert not [row for row in Key.objects.system().values_list() if good in str(row)]
    assert Key.objects.system().filter(digest=principals.digest_of(good)).count() == 1


def flipped(token: str, place: int) -> str:
    """The key with another digit at a place."""
    digits = list(token)
    digits[place] = "0" if digits[place] != "0" else "1"
    return "".join(digits)


def test_every_raw_route_refuses_without_a_key(mcp_server: Live) -> None:
    assert set(asgi.RAW) == {"/mcp", "/mcp/", "/tools"}
    for path in asgi.RAW:
        for method in ("GET", "POST", "DELETE", "PUT", "OPTIONS"):
            assert httpx.request(method, f"{mcp_server.url}{path}").status_code == 401, (method, path)
    for path in ("/ws/mcp/", "/ws/mcp"):
        with pytest.raises(InvalidStatus) as refusal, connect(mcp_server.url.replace("http", "ws", 1) + path):
            raise AssertionError("accepted")
        assert refusal.value.response.status_code == 403
    assert Session.objects.count() == 0


def test_T47_a_socket_hears_only_of_its_own_workspace(mcp_server: Live) -> None:
    ours, theirs = company("ours"), company("theirs")
    with (
        ws_client(mcp_server.url, ours.tokens["owner"]) as mine,
        ws_client(mcp_server.url, theirs.tokens["owner"]) as other,
    ):
        assert mine.names() == other.names()
        made = other.call("tasks_create", {"title": "secret"})["result"]["structuredContent"]
        for name, arguments in (
            ("tasks_claim", {"task_id": made["id"]}),
            ("tasks_update", {"task_id": made["id"], "title": "x"}),
            ("tasks_complete", {"task_id": made["id"]}),
        ):
            stolen = mine.call(name, arguments)
            missing = mine.call(name, {**arguments, "task_id": "0190a0a0-0000-7000-8000-000000000000"})
            assert stolen.get("result") == missing.get("result") and stolen.get("error") == missing.get("error")
            assert "error" in stolen or stolen["result"]["isError"] is True
        assert "secret" not in json.dumps(mine.call("tasks_list"))
        theirs.owner.status = "paused"
        theirs.owner.save()
        other.wait_changed(1)
        mcp_server.settle()
        mine.request("ping")
        assert mine.notes() == 0
    assert Task.objects.system().get().title == "secret"


def test_T47_a_session_of_another_workspace_is_unknown(mcp_server: Live) -> None:
    ours, theirs = company("ours"), company("theirs")
    with http_client(mcp_server.url, theirs.tokens["owner"]) as client:
        client.initialize()
        ticket = client.headers["Mcp-Session-Id"]
        number = client.begin("ping")
        client.answer(number)
        answers = []
        for sent in (ticket, "0190a0a0-0000-7000-8000-000000000000.2025-11-25.0"):
            headers = {"Authorization": f"Bearer {ours.tokens['owner']}", "Mcp-Session-Id": sent}
            headers |= {"Content-Type": "application/json"}
            answer = httpx.post(mcp_server.mcp_url, content=LIST, headers=headers)
            answers.append((answer.status_code, answer.text))
        assert answers[0] == answers[1] and answers[0][0] == 404


def test_T47_one_session_cannot_cancel_anothers_call(mcp_server: Live, people: Company) -> None:
    with (
        registry.temporarily(peek()),
        ws_client(mcp_server.url, people.tokens["owner"]) as mine,
        ws_client(mcp_server.url, people.tokens["colleague"]) as other,
    ):
        other.notify("notifications/cancelled", {"requestId": 1})
        assert "result" in mine.call("peek")
