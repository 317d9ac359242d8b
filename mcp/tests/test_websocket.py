"""MCP over WebSocket: the door, the frames, the end."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agents.actions import grants
from agents.actions.keys import revoke_key
from agents.models import Agent, Capabilities, Grant, Key
from duduclaw.lib import rate
from mcp import registry
from mcp.models import AuditRow
from mcp.transports import edge, websocket
from tasks.models import Task
from tests.build import Company, company, key
from tests.live import Live
from tests.stack import WATCHDOG, wait_until
from tests.tools import Door, send_message, sent
from tests.wire_clients import ws_client

BATCH = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])


@contextmanager
def raw(live: Live, token: str, **headers: str) -> Iterator[ClientConnection]:
    """A socket without a client behind it."""
    extra = {"Authorization": f"Bearer {token}", **headers}
    with connect(live.ws_url, additional_headers=extra, compression=None) as connection:
        yield connection


def refused(url: str, **options: Any) -> tuple[int, dict[str, Any]]:
    """Status and JSON body of a handshake that must fail."""
    with pytest.raises(InvalidStatus) as caught, connect(url, **options):
        raise AssertionError("the handshake succeeded")
    response = caught.value.response
    return response.status_code, json.loads(response.body or b"{}")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_the_subprotocol_is_echoed_and_none_is_fine(mcp_server: Live) -> None:
    token = company().tokens["owner"]
    with connect(mcp_server.ws_url, additional_headers=bearer(token), subprotocols=["mcp"]) as one:  # type: ignore[list-item]
        assert one.subprotocol == "mcp"
    with raw(mcp_server, token) as other:
        assert other.subprotocol is None


def test_a_key_may_come_as_a_subprotocol_and_is_never_echoed(mcp_server: Live) -> None:
    offered: list[Any] = ["mcp", f"mcp.auth.{company().tokens['owner']}"]
    with connect(mcp_server.ws_url, subprotocols=offered) as link:
        assert link.subprotocol == "mcp"
        link.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert json.loads(link.recv()) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("path", ["/ws/other/", "/ws/", "/", "/mcp"])
def test_an_unknown_path_is_a_clean_404(mcp_server: Live, path: str, caplog: pytest.LogCaptureFixture) -> None:
    status, body = refused(mcp_server.url.replace("http", "ws", 1) + path)
    assert (status, body["error"]) == (404, "not_found")
    assert not caplog.records


def test_no_key_or_a_bad_one_is_403_before_the_handshake(mcp_server: Live) -> None:
    good = company().tokens["owner"]
    for headers, error in (
        ({}, "missing"),
        (bearer("nonsense"), "invalid_format"),
        (bearer(f"{good[:-1]}{'0' if good[-1] != '0' else '1'}"), "unknown"),
        ({"Cookie": "sessionid=anything"}, "missing"),
    ):
        assert refused(mcp_server.ws_url, additional_headers=headers) == (
            403,
            {"error": error, "detail": "a valid key is needed"},
        )


def test_strangers_are_counted_by_address(mcp_server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "strangers", rate.Limiter({"unauthenticated": rate.Bucket(1, 3)}))
    statuses = [refused(mcp_server.ws_url)[0] for _ in range(4)]
    assert statuses[0] == 403 and statuses[-1] == 429
    with ws_client(mcp_server.url, company().tokens["owner"]) as client:
        assert client.request("ping")["result"] == {}


def test_binary_is_1003_and_too_large_is_1009(mcp_server: Live) -> None:
    token = company().tokens["owner"]
    for frame, code in ((b"\x00", 1003), ("x" * (1024 * 1024 + 1), 1009)):
        with raw(mcp_server, token) as link:
            link.send(frame)
            with pytest.raises(ConnectionClosed) as caught:
                link.recv(WATCHDOG)
        assert caught.value.rcvd is not None and caught.value.rcvd.code == code


def test_frames_that_are_no_message_leave_the_socket_open(mcp_server: Live) -> None:
    with raw(mcp_server, company().tokens["owner"]) as link:
        for frame, code in (
            ("{", -32700),
            ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
            ('{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
            (BATCH, -32600),
            ("[]", -32600),
            ('"ping"', -32600),
            ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        ):
            link.send(frame)
            answer = json.loads(link.recv(WATCHDOG))
            assert (answer["error"]["code"], answer["id"]) == (code, None), frame
        link.send('{"jsonrpc":"2.0","id":0,"method":"ping"}')
        assert json.loads(link.recv(WATCHDOG)) == {"jsonrpc": "2.0", "id": 0, "result": {}}


def test_too_many_frames_that_ask_for_nothing_are_cut_with_1008(
    mcp_server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "NOISE", rate.Bucket(60, 5))
    with raw(mcp_server, company().tokens["owner"]) as link:
        with pytest.raises(ConnectionClosed) as caught:
            while True:
                link.send('{"jsonrpc":"2.0","method":"notifications/nothing"}')
    assert caught.value.rcvd is not None and caught.value.rcvd.code == 1008


def test_an_id_in_flight_cannot_be_used_again(mcp_server: Live) -> None:
    door = Door()
    with registry.temporarily(door.tool(slow=True)), ws_client(mcp_server.url, company().tokens["owner"]) as client:
        client.begin("tools/call", {"name": "wait_inside"}, number="same")
        door.wait_entered()
        client.begin("ping", number="same")
        client.wait(lambda: len(client.frames) == 1, "the refusal")
        assert client.frames[0]["error"]["code"] == -32600 and client.frames[0]["id"] == "same"
        door.open.set()
        client.wait(lambda: len(client.frames) == 2, "the result")
        assert client.frames[1]["result"]["isError"] is False


def test_two_slow_calls_on_two_sockets_overlap_and_delay_no_fast_one(mcp_server: Live) -> None:
    door, token = Door(), company().tokens["owner"]
    with (
        registry.temporarily(door.tool(slow=True)),
        ws_client(mcp_server.url, token) as one,
        ws_client(mcp_server.url, token) as other,
    ):
        first, second = one.begin_call("wait_inside"), other.begin_call("wait_inside")
        door.wait_entered()
        door.wait_entered()
        assert "result" in other.call("tasks_list")
        assert one.answered(first) is None and other.answered(second) is None
        door.open.set()
        assert one.answer(first)["result"]["isError"] is False
        assert other.answer(second)["result"]["isError"] is False


def test_a_call_taken_back_in_the_queue_has_no_effect_no_frame_and_one_row(mcp_server: Live) -> None:
    door, people = Door(), company()
    with (
        registry.temporarily(door.tool()),
        ws_client(mcp_server.url, people.tokens["owner"]) as one,
        ws_client(mcp_server.url, people.tokens["owner"]) as other,
    ):
        one.begin_call("wait_inside", {"text": "first"})
        door.wait_entered()
        one.begin_call("wait_inside", {"text": "second"})
        number = other.begin_call("wait_inside", {"text": "third"})
        other.notify("notifications/cancelled", {"requestId": number})
        other.notify("notifications/cancelled", {"requestId": 999})
        assert other.request("ping")["result"] == {}
        door.open.set()
        wait_until(lambda: AuditRow.objects.filter(tool="wait_inside").count() == 3, "the rows")
        assert "result" in other.call("tasks_list")
        assert other.answered(number) is None
    assert sent() == ["first", "second"]
    rows = AuditRow.objects.filter(tool="wait_inside").order_by("id")
    assert [row.outcome for row in rows] == ["ok", "ok", "cancelled"]


def revoke(token: str, people: Company) -> None:
    """As an operator does it."""
    revoke_key(Key.objects.system().get(prefix=token[:17]), by=people.who("operator"))


def tasks() -> int:
    return Task.objects.system().count()


def test_W01_a_revoked_key_ends_its_socket_and_the_other_key_goes_on(mcp_server: Live) -> None:
    people = company()
    second = key(people.space, "agent", agent=people.owner)[1]
    with ws_client(mcp_server.url, people.tokens["owner"]) as one, ws_client(mcp_server.url, second) as other:
        assert one.names() == other.names()
        revoke(people.tokens["owner"], people)
        assert one.wait_ended() == 4403
        with pytest.raises(ConnectionClosed):
            one.begin_call("tasks_create", {"title": "x"})
        assert tasks() == 0
        assert other.call("tasks_create", {"title": "x"})["result"]["isError"] is False
        assert tasks() == 1
        Agent.objects.system().filter(pk=people.owner.pk).update(status="terminated")
        assert other.wait_ended() == 4403
    assert tasks() == 1
    assert refused(mcp_server.ws_url, additional_headers=bearer(second))[0] == 403


def test_W01_a_call_right_after_the_revocation_does_nothing(mcp_server: Live) -> None:
    people = company()
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        client.names()
        Key.objects.system().filter(prefix=people.tokens["owner"][:17]).update(revoked_at="2026-01-01T00:00:00Z")
        client.begin_call("tasks_create", {"title": "x"})
        assert client.wait_ended() == 4403
        assert tasks() == 0 and not [frame for frame in client.frames if frame.get("id") == 2]


def test_W01_a_paused_agent_sees_nothing_and_may_call_nothing(mcp_server: Live) -> None:
    people = company()
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        assert client.names()
        Agent.objects.system().filter(pk=people.owner.pk).update(status="paused")
        client.wait_changed(1)
        assert client.names() == set()
        error = client.call("tasks_create", {"title": "x"})["error"]
        assert (error["code"], error["data"]["error"], tasks()) == (-32003, "agent_not_active", 0)


def test_T07_revoked_is_4403_and_expired_is_4401(mcp_server: Live) -> None:
    people = company()
    with ws_client(mcp_server.url, people.tokens["owner"]) as one:
        Key.objects.system().filter(prefix=people.tokens["owner"][:17]).update(expires_at="2026-01-01T00:00:00Z")
        assert one.wait_ended() == 4401


@pytest.mark.parametrize("ended", ["grant", "list"])
def test_T18_a_right_that_ends_between_check_and_effect_leaves_no_effect(mcp_server: Live, ended: str) -> None:
    people, door = company(), Door()
    Capabilities.objects.filter(agent=people.owner).update(scoped_tools=["send_message"])
    by = people.who("operator")
    with transaction.atomic():
        grant = grants.mint(people.owner, "send_message", source=Grant.Source.CAPABILITY_REQUEST, by=by)

    def at_the_guards(given: dict[str, Any]) -> None:
        door.entered.release()
        assert door.open.wait(WATCHDOG)

    tool = send_message(scope_when=at_the_guards)
    with registry.temporarily(tool), ws_client(mcp_server.url, people.tokens["owner"]) as client:
        number = client.begin_call("send_message", {"to": "a", "text": "b"})
        door.wait_entered()
        if ended == "grant":
            grants.revoke_grant(grant, by=by)
        else:
            Capabilities.objects.filter(agent=people.owner).update(denied_tools=["send_message"])
        door.open.set()
        error = client.answer(number)["error"]
        assert error["data"]["error"] == {"grant": "grant_revoked", "list": "denied_tools"}[ended]
    assert sent() == []
    assert AuditRow.objects.filter(tool="send_message").count() == 1


def test_T07_a_call_that_runs_when_its_key_is_revoked_is_written_down_as_done_after(mcp_server: Live) -> None:
    people, door = company(), Door()
    with (
        registry.temporarily(door.tool(slow=True)),
        ws_client(mcp_server.url, people.tokens["owner"]) as client,
    ):
        number = client.begin_call("wait_inside", {"text": "too late to stop"})
        door.wait_entered()
        revoke(people.tokens["owner"], people)
        assert client.wait_ended() == 4403
        door.open.set()
        row = wait_until(lambda: AuditRow.objects.filter(tool="wait_inside").first(), "the row")
        assert (row.outcome, row.reason) == ("ok", "done_after_revoke")
        assert client.answered(number) is None
    assert AuditRow.objects.filter(tool="wait_inside").count() == 1
