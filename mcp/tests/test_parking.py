"""Calls that wait for a person: they hold no thread and block nobody, and an answer counts once."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.actions import approvals
from agents.models import Approval, Capabilities
from duduclaw.lib import clock
from mcp import parking, push, registry, session
from mcp.errors import Refused
from mcp.models import AuditRow
from mcp.parking import park
from tests.build import Company, company, key
from tests.live import Live
from tests.stack import wait_until
from tests.tools import send_message, sent
from tests.wire_clients import CLIENTS, Peer, http_client, ws_client

A = {"to": "#ops", "text": "A"}
TRANSPORTS = {name: CLIENTS[name] for name in ("ws", "http")}


@pytest.fixture
def people(mcp_server: Live) -> Iterator[Company]:
    """The owner needs a person for send_message."""
    made = company()
    Capabilities.objects.filter(agent=made.owner).update(approval_required_tools=["send_message"])
    with registry.temporarily(send_message()):
        yield made


@pytest.fixture(params=TRANSPORTS)
def peer(request: pytest.FixtureRequest, mcp_server: Live, people: Company) -> Iterator[Peer]:
    """The owner, initialized."""
    with TRANSPORTS[request.param](mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        yield client


def pending(count: int = 1) -> list[Approval]:
    """The questions that wait, oldest first, once there are so many."""

    def look() -> list[Approval]:
        rows = list(Approval.objects.system().filter(status="pending").order_by("id"))
        return rows if len(rows) == count else []

    found: list[Approval] = wait_until(look, f"{count} questions")
    return found


def decide(row: Approval, people: Company, decision: str = "approve") -> None:
    approvals.decide(row, by=people.who("operator"), decision=decision)


def rows() -> list[tuple[str, str]]:
    """(outcome, reason) of the calls of send_message, oldest first."""
    return list(AuditRow.objects.filter(tool="send_message").order_by("id").values_list("outcome", "reason"))


def asked(peer: Peer, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer to a call that nobody decides in time."""
    result: dict[str, Any] = peer.call("send_message", arguments)["result"]
    assert result["isError"] is True
    structured: dict[str, Any] = result["structuredContent"]
    return structured


def test_V04_an_approval_is_for_one_call_of_the_same_arguments(
    peer: Peer, people: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "PATIENCE", 0.3)
    first = asked(peer, A)
    assert first["error"] == "approval_pending"
    decide(pending()[0], people)
    other = asked(peer, {"to": "#ops", "text": "B"})
    assert other["error"] == "approval_pending" and other["approval_id"] != first["approval_id"]
    assert peer.call("send_message", {"text": "A", "to": "#ops"})["result"]["isError"] is False
    again = asked(peer, A)
    assert again["error"] == "approval_pending" and again["approval_id"] != first["approval_id"]
    with pytest.raises(Refused) as caught:
        decide(Approval.objects.system().get(pk=first["approval_id"]), people)
    assert caught.value.code == "already_decided"
    assert sent() == ["A"]
    assert rows() == [
        ("denied", "approval_pending"),
        ("denied", "approval_pending"),
        ("ok", ""),
        ("denied", "approval_pending"),
    ]


@pytest.mark.parametrize(("decision", "ends"), [("approve", None), ("deny", "approval_denied")])
def test_a_waiting_call_goes_on_with_the_decision(peer: Peer, people: Company, decision: str, ends: str | None) -> None:
    number = peer.begin_call("send_message", A)
    decide(pending()[0], people, decision)
    result = peer.answer(number)["result"]
    assert result["structuredContent"].get("error") == ends
    assert (sent(), len(rows())) == (["A"] if ends is None else [], 1)


def test_a_lost_event_costs_a_look_at_the_rows(peer: Peer, people: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push.Hub, "heard", lambda self, event: None)
    monkeypatch.setattr(parking, "SWEEP", 0.05)
    number = peer.begin_call("send_message", A)
    decide(pending()[0], people)
    assert peer.answer(number)["result"]["isError"] is False


def test_a_parked_call_blocks_no_other(mcp_server: Live, people: Company, peer: Peer) -> None:
    number = peer.begin_call("send_message", A, token="p")
    question = pending()[0]
    assert (question.expires_at - question.requested_at).total_seconds() == 300
    with ws_client(mcp_server.url, people.tokens["owner"]) as other:
        for client in (peer, other):
            assert "result" in client.call("tasks_list")
            assert client.call("tasks_create", {"title": "x"})["result"]["isError"] is False
    assert peer.answered(number) is None
    decide(question, people)
    assert peer.answer(number)["result"]["isError"] is False


def test_with_a_progress_token_a_call_waits_to_the_end_of_its_question(
    peer: Peer, people: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "PATIENCE", 0.0)
    monkeypatch.setattr(parking, "SWEEP", 0.05)
    monkeypatch.setattr(session, "PROGRESS", 0.05)
    number = peer.begin_call("send_message", A, token="p")
    peer.wait(lambda: peer.notes("notifications/progress") >= 2, "progress")
    assert peer.frames[-1]["params"]["message"] == "waiting for a person"
    Approval.objects.system().update(expires_at=clock.now())
    assert peer.answer(number)["result"]["structuredContent"]["error"] == "approval_expired"
    assert rows() == [("denied", "approval_expired")]


def test_ten_calls_of_a_key_may_wait(mcp_server: Live, people: Company) -> None:
    second = key(people.space, "agent", agent=people.owner)[1]
    with ws_client(mcp_server.url, people.tokens["owner"]) as one, ws_client(mcp_server.url, second) as other:
        numbers = [one.begin_call("send_message", {"to": "#ops", "text": str(n)}, token=f"p{n}") for n in range(10)]
        questions = pending(10)
        wait_until(lambda: sum(park.per_key.values()) == 10, "ten parked calls")
        assert asked(one, A)["error"] == "approval_pending"
        number = other.begin_call("send_message", A)
        wait_until(lambda: sum(park.per_key.values()) == 11, "the other key's call")
        for question in questions:
            decide(question, people)
        assert all(one.answer(n)["result"]["isError"] is False for n in numbers)
        decide(pending()[0], people)
        assert other.answer(number)["result"]["isError"] is False
    assert not park.per_key and not park.waiting


def test_a_full_process_lets_nobody_wait(peer: Peer, people: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "PER_PROCESS", 0)
    assert asked(peer, A)["error"] == "approval_pending"
    assert peer.call("send_message", A, token="p")["result"]["structuredContent"]["error"] == "approval_pending"


def test_the_client_gone_the_decision_stands_and_the_same_call_uses_it_once(
    mcp_server: Live, people: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        client.begin_call("send_message", A, token="p")
        question = pending()[0]
        wait_until(lambda: park.waiting, "the parked call")
    wait_until(rows, "the row")
    assert rows() == [("cancelled", "cancelled")]
    decide(question, people)
    monkeypatch.setattr(parking, "PATIENCE", 0.0)
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        assert client.call("send_message", A)["result"]["isError"] is False
        assert asked(client, A)["error"] == "approval_pending"
    assert sent() == ["A"]
    assert [outcome for outcome, _ in rows()] == ["cancelled", "ok", "denied"]


def test_the_same_over_http(mcp_server: Live, people: Company) -> None:
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        client.call_and_leave("send_message", A)
        question = pending()[0]
        wait_until(rows, "the row")
        assert rows() == [("cancelled", "cancelled")]
        decide(question, people)
        assert client.call("send_message", A)["result"]["isError"] is False
    assert sent() == ["A"]


def test_a_cancelled_wait_ends_without_a_frame(peer: Peer, people: Company) -> None:
    number = peer.begin_call("send_message", A)
    question = pending()[0]
    wait_until(lambda: park.waiting, "the parked call")
    peer.notify("notifications/cancelled", {"requestId": number})
    wait_until(rows, "the row")
    assert rows() == [("cancelled", "cancelled")]
    assert peer.request("ping")["result"] == {}
    assert peer.answered(number) is None
    decide(question, people)
    assert sent() == []
