"""list_changed: who hears of what, how often, and what a result waits for."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from agents.actions import approvals, grants
from agents.actions.system import platform
from agents.models import Approval, Capabilities, Grant
from duduclaw import events
from mcp import push, registry, toolcall
from mcp.connection import Connection
from mcp.models import Session
from mcp.push import hub
from mcp.transports import outlet
from tasks.actions import finish, moves
from tasks.models import Task
from tests.build import Company, company
from tests.deaf import Deaf
from tests.live import Live
from tests.stack import WATCHDOG, wait_until
from tests.tools import peek, send_message
from tests.wire_clients import CHANGED, CLIENTS, HttpPeer, Peer, http_client, ws_client

STALE = "duduclaw/stale_tools"


def scoped(people: Company, *tools: str, agent: str = "owner") -> None:
    """Put tools on an agent's list of those that need a grant."""
    Capabilities.objects.filter(agent__name=agent).update(scoped_tools=list(tools))


def grant(people: Company, tool: str, task: str = "") -> Grant:
    """As a decision mints it."""
    by = platform(people.space)
    with transaction.atomic():
        return grants.mint(people.owner, tool, task_id=task, source=Grant.Source.CAPABILITY_REQUEST, by=by)


def heard(live: Live, peer: Peer) -> int:
    """list_changed that the client has got once all that is due was sent."""
    live.settle()
    peer.request("ping")
    return peer.notes()


def held_task(peer: Peer, title: str) -> str:
    """A task that the caller has claimed."""
    made: str = peer.call("tasks_create", {"title": title})["result"]["structuredContent"]["id"]
    assert peer.call("tasks_claim", {"task_id": made})["result"]["isError"] is False
    return made


def approve(people: Company) -> None:
    """A person says yes to what waits."""
    row = wait_until(lambda: Approval.objects.system().filter(status="pending").first(), "the question")
    approvals.decide(row, by=people.who("operator"), decision="approve")


def ask(peer: Peer, people: Company, task: str) -> dict[str, Any]:
    """capability_request for send_message, approved."""
    number = peer.begin_call("capability_request", {"tool": "send_message", "reason": "need", "task_id": task})
    approve(people)
    result: dict[str, Any] = peer.answer(number)["result"]
    assert result["isError"] is False
    return result


def cancelled(task: Task, people: Company) -> None:
    finish.cancel_task(task, by=people.who("operator"))


def failed(task: Task, people: Company) -> None:
    with transaction.atomic():
        row = Task.objects.system().select_for_update().get(pk=task.pk)
        moves.move(row, platform(people.space), Task.Status.FAILED, "task_failed", "no retries are left")


@pytest.mark.parametrize("ending", [cancelled, failed])
def test_V02_changes_are_told_once_and_grants_end_with_their_last_task(
    mcp_server: Live, ending: Callable[[Task, Company], None]
) -> None:
    people = company()
    scoped(people, "send_message")
    caps = Capabilities.objects.filter(agent=people.owner)
    caps.update(allowed_tools=["tasks_*", "capability_request", "send_message"])
    with registry.temporarily(send_message()), ws_client(mcp_server.url, people.tokens["owner"]) as client:
        assert client.initialize()["capabilities"]["tools"]["listChanged"] is True
        assert "send_message" not in client.names()
        one, two = held_task(client, "one"), held_task(client, "two")
        events.publish("policy", agent=people.owner.id)
        caps.update(allowed_tools=["tasks_*", "capability_request", "send_message"])
        assert heard(mcp_server, client) == 0
        caps.update(allowed_tools=["send_message", "tasks_*", "capability_request"])
        assert heard(mcp_server, client) == 0
        ask(client, people, one)
        assert "send_message" in client.names()
        ask(client, people, two)
        assert heard(mcp_server, client) == 1
        assert client.call("tasks_complete", {"task_id": one})["result"]["isError"] is False
        assert heard(mcp_server, client) == 1
        assert client.call("send_message", {"to": "a", "text": "b"})["result"]["isError"] is False
        ending(Task.objects.system().get(pk=two), people)
        error = client.call("send_message", {"to": "a", "text": "b"})["error"]
        assert error["data"]["error"] == "capability_grant_missing"
        assert heard(mcp_server, client) == 2
        assert "send_message" not in client.names()


def test_T17_list_changed_0_1_1(mcp_server: Live) -> None:
    people = company()
    scoped(people, "peek")
    with registry.temporarily(peek()), ws_client(mcp_server.url, people.tokens["owner"]) as client:
        client.names()
        Capabilities.objects.filter(agent=people.owner).update(scoped_tools=["peek"])
        events.publish("policy", agent=people.owner.id)
        assert heard(mcp_server, client) == 0
        made = grant(people, "peek")
        client.wait_changed(1)
        assert "peek" in client.names()
        grants.revoke_grant(made, by=people.who("operator"))
        client.wait_changed(2)
        assert "peek" not in client.names()
        assert heard(mcp_server, client) == 2


def test_a_grant_that_runs_out_is_told(mcp_server: Live) -> None:
    people = company()
    scoped(people, "peek")
    made = grant(people, "peek")
    with registry.temporarily(peek()), ws_client(mcp_server.url, people.tokens["owner"]) as client:
        assert "peek" in client.names()
        Grant.objects.system().filter(pk=made.pk).update(expires_at=timezone.now())
        client.wait_changed(1)
        assert "peek" not in client.names()


def test_a_session_that_never_listed_hears_nothing(mcp_server: Live) -> None:
    people = company()
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=["tasks_*"])
        assert heard(mcp_server, client) == 0


def test_a_change_undone_before_it_was_told_is_not_told(mcp_server: Live) -> None:
    people = company()
    caps = Capabilities.objects.filter(agent=people.owner)
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        client.names()
        with transaction.atomic():
            caps.update(denied_tools=["tasks_*"])
            caps.update(denied_tools=[])
        assert heard(mcp_server, client) == 0


@pytest.fixture(params=["ws", "http"])
def listener(request: pytest.FixtureRequest, mcp_server: Live) -> Any:
    """The owner, initialized, with a stream that can tell it."""
    people = company()
    scoped(people, "send_message")
    opened = CLIENTS[request.param]
    with registry.temporarily(send_message()), opened(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        if isinstance(client, HttpPeer):
            assert client.listen() == 200
        client.names()
        yield client, people


def test_the_notification_comes_before_the_result_of_the_call_that_changed_the_set(
    listener: tuple[Peer, Company],
) -> None:
    client, people = listener
    task = held_task(client, "one")
    ask(client, people, task)
    changed = next(n for n, frame in enumerate(client.frames) if frame.get("method") == CHANGED)
    assert changed < len(client.frames) - 1
    assert client.frames[-1]["result"]["_meta"] == {STALE: True}
    assert "send_message" in client.names()
    assert "_meta" not in client.call("tasks_list")["result"]


def test_the_result_is_held_until_the_client_has_looked(
    listener: tuple[Peer, Company], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolcall, "HOLD", WATCHDOG)
    client, people = listener
    task = held_task(client, "one")
    number = client.begin_call("capability_request", {"tool": "send_message", "reason": "need", "task_id": task})
    approve(people)
    client.wait_changed(1)
    assert client.answered(number) is None
    assert "send_message" in client.names()
    assert "_meta" not in client.answer(number)["result"]
    row = Session.objects.get()
    assert row.notified_at and row.relisted_at and row.relisted_at >= row.notified_at and not row.stale


def test_the_result_is_held_where_another_process_has_the_stream(
    mcp_server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolcall, "HOLD", WATCHDOG)
    monkeypatch.setattr(Connection, "watch", None)
    people = company()
    scoped(people, "send_message")
    with registry.temporarily(send_message()), http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        assert client.listen() == 200
        client.names()
        task = held_task(client, "one")
        number = client.begin_call("capability_request", {"tool": "send_message", "reason": "need", "task_id": task})
        approve(people)
        client.wait_changed(1)
        assert client.answered(number) is None
        assert "send_message" in client.names()
        assert "_meta" not in client.answer(number)["result"]


def test_calls_that_change_nothing_of_the_callers_set_are_not_held(
    listener: tuple[Peer, Company], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolcall, "HOLD", WATCHDOG * 2)
    client, people = listener
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=["emergency_stop"])
    client.wait_changed(1)
    result = client.call("tasks_create", {"title": "x"})["result"]
    assert result["_meta"] == {STALE: True}
    assert Session.objects.get().stale


def test_a_stale_session_is_marked_until_it_looks(listener: tuple[Peer, Company]) -> None:
    client, people = listener
    caps = Capabilities.objects.filter(agent=people.owner)
    caps.update(denied_tools=["emergency_stop"])
    client.wait_changed(1)
    assert client.call("tasks_list")["result"]["_meta"] == {STALE: True}
    caps.update(denied_tools=[])
    client.wait_changed(2)
    assert "emergency_stop" in client.names()
    assert "_meta" not in client.call("tasks_list")["result"]
    assert not Session.objects.get().stale


def test_a_session_without_a_stream_is_told_in_its_results(mcp_server: Live) -> None:
    people = company()
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        client.names()
        assert "_meta" not in client.call("tasks_list")["result"]
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=["emergency_stop"])
        assert client.call("tasks_create", {"title": "x"})["result"]["_meta"] == {STALE: True}
        assert Session.objects.get().stale
        client.names()
        assert "_meta" not in client.call("tasks_list")["result"]
        assert not Session.objects.get().stale


def test_a_stream_that_opens_after_the_change_tells_it(mcp_server: Live) -> None:
    people = company()
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        client.names()
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=["emergency_stop"])
        assert client.listen() == 200
        client.wait_changed(1)


def test_two_streams_of_a_session_tell_it_once(mcp_server: Live) -> None:
    people = company()
    with http_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        client.names()
        assert client.listen() == client.listen() == 200
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=["emergency_stop"])
        client.wait_changed(1)
        assert heard(mcp_server, client) == 1


def test_lost_events_are_healed_by_the_sweep(mcp_server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push.Hub, "heard", lambda self, event: None)
    people = company()
    with ws_client(mcp_server.url, people.tokens["owner"]) as client:
        client.names()
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=["tasks_*"])
        client.wait_changed(1)
        assert not [name for name in client.names() if name.startswith("tasks_")]


def clog(live: Live, deaf: Deaf) -> None:
    """Ask for lists until the server cannot get rid of another answer."""
    number = 0
    while not asyncio.run_coroutine_threadsafe(is_clogged(), live.loop).result(WATCHDOG):
        number += 1
        deaf.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})


async def is_clogged() -> bool:
    """Whether a send to some stream waits."""
    outlets: list[Any] = [watch.send for watch in hub.all()]
    return any(say.__self__._turn.locked() for say in outlets)


def test_a_client_that_does_not_read_hears_of_the_last_of_300_changes_and_delays_nobody(
    mcp_server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "STUCK", WATCHDOG * 5)
    people = company()
    caps = Capabilities.objects.filter(agent=people.owner)
    deaf = Deaf(mcp_server.url, people.tokens["owner"])
    try:
        with ws_client(mcp_server.url, people.tokens["owner"]) as other:
            other.names()
            clog(mcp_server, deaf)
            for number in range(300):
                caps.update(denied_tools=[["tasks_list"], ["tasks_claim"], ["tasks_list", "tasks_claim"]][number % 3])
                if number % 100 == 0:
                    before = other.notes()
                    other.wait_changed(before + 1)
                    assert "result" in other.call("list_agents")
            frames: list[dict[str, Any]] = []
            while not frames or frames[-1].get("method") != CHANGED:
                frames.append(deaf.read())
            deaf.send({"jsonrpc": "2.0", "id": "last", "method": "tools/list"})
            while frames[-1].get("id") != "last":
                frames.append(deaf.read())
            names = {tool["name"] for tool in frames[-1]["result"]["tools"]}
            assert "tasks_create" in names and not names & {"tasks_list", "tasks_claim"}
            wait_until(lambda: other.names() == names, "the same for the other")
    finally:
        deaf.close()


def test_a_client_that_reads_nothing_for_long_is_cut_off(mcp_server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "STUCK", 0.2)
    deaf = Deaf(mcp_server.url, company().tokens["owner"])
    try:
        clog(mcp_server, deaf)
        wait_until(lambda: Session.objects.get().closed_at, "the end of the socket")
        assert not hub.all()
    finally:
        deaf.close()
