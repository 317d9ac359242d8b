"""Changes across processes: a command, a second web process, and a channel layer that is dead."""

import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from duduclaw import events
from duduclaw.lib import valkey
from tests.stack import Stack, Web, wait_until
from tests.wire_clients import HttpPeer, http_client, ws_client


def patch(web: Web, server: Stack, agent: str, **capabilities: Any) -> None:
    """As an operator does it, through one of the web processes."""
    headers = {"Authorization": f"Bearer {server.keys['operator']}"}
    url = f"{web.url}/api/v1/agents/{agent}/"
    httpx.patch(url, json={"capabilities": capabilities}, headers=headers, timeout=60).raise_for_status()


def shell(server: Stack, code: str) -> str:
    """In a process of its own, as a job or a command would."""
    return server.manage("shell", "--no-imports", "-c", code).stdout.strip()


def deny(server: Stack, tool: str) -> None:
    """A change that publishes no event."""
    what = f"filter(agent__name='lead').update(denied_tools={[tool] if tool else []})"
    shell(server, f"from agents.models import Capabilities; Capabilities.objects.{what}")


def test_with_valkey_dead_sockets_live_on_and_hear_of_changes(new_stack: Callable[..., Stack]) -> None:
    server = new_stack("sqlite")
    with ws_client(server.url, server.keys["lead"]) as one, http_client(server.url, server.keys["lead"]) as two:
        for peer in (one, two):
            peer.initialize()
        assert two.listen() == 200
        for peer in (one, two):
            peer.names()
        server.stop_valkey()
        patch(server.webs[0], server, "lead", denied_tools=["tasks_claim"])
        for peer in (one, two):
            peer.wait_changed(1)
            assert "tasks_claim" not in peer.names()
            assert peer.call("tasks_create", {"title": "x"})["result"]["isError"] is False
        deny(server, "tasks_list")
        for peer in (one, two):
            peer.wait_changed(2)
            assert "tasks_list" not in peer.names()
        wait_until(lambda: "the channel layer: down" in server.log(), "the line that tells it")
        server.start_valkey()
        numbers = itertools.count()
        wait_until(lambda: is_back(server, next(numbers)), "its return")
        wait_until(lambda: ears(server) == 1, "the ear")
        patch(server.webs[0], server, "lead", denied_tools=[])
        for peer in (one, two):
            peer.wait_changed(3)
    assert "Traceback" not in server.log()
    assert server.log().count("the channel layer") <= 4


def ears(server: Stack) -> int:
    """How many processes listen at the channel layer."""
    with valkey.client(f"unix://{valkey.socket_path(server.home)}?db=0") as client:
        heard: list[tuple[str, int]] = client.pubsub_numsub(f"ddc__group__{events.GROUP}")
    return heard[0][1]


def is_back(server: Stack, number: int) -> bool:
    """A change makes the server speak, and so find that the layer is back."""
    patch(server.webs[0], server, "writer", denied_tools=[f"tool_{number}"])
    return "layer: works again" in server.log()


@pytest.mark.postgres
def test_a_change_through_one_process_reaches_the_clients_of_another_once(new_stack: Callable[..., Stack]) -> None:
    server = new_stack("postgres")
    first, second = server.webs[0], server.start_web()
    with (
        ws_client(second.url, server.keys["lead"]) as socket,
        http_client(first.url, server.keys["lead"]) as streams,
        ws_client(second.url, server.keys["analyst"]) as other,
    ):
        for peer in (socket, streams, other):
            peer.initialize()
        assert listen_at(streams, first) == listen_at(streams, second) == 200
        for peer in (socket, streams, other):
            assert "tasks_claim" in peer.names()
        patch(first, server, "lead", denied_tools=["tasks_claim"])
        for peer in (socket, streams):
            peer.wait_changed(1)
            assert "tasks_claim" not in peer.names()
        patch(second, server, "lead", denied_tools=[])
        for peer in (socket, streams):
            peer.wait_changed(2)
            assert "tasks_claim" in peer.names()
        assert socket.notes() == streams.notes() == 2 and other.notes() == 0
        moved = dict(streams.headers)
        streams.url = second.mcp_url
        assert "tasks_claim" in streams.names() and streams.headers == moved
    assert "Traceback" not in server.log()


def listen_at(peer: HttpPeer, web: Web) -> int:
    """Open a stream of the session at a process."""
    home, peer.url = peer.url, web.mcp_url
    status = peer.listen()
    peer.url = home
    return status


@pytest.mark.postgres
def test_a_result_is_held_and_a_call_cancelled_across_processes(new_stack: Callable[..., Stack]) -> None:
    server = new_stack("postgres")
    first, second = server.webs[0], server.start_web()
    patch(first, server, "lead", scoped_tools=["emergency_stop"], approval_required_tools=["tasks_create"])
    with http_client(first.url, server.keys["lead"]) as peer:
        peer.initialize()
        assert listen_at(peer, second) == 200
        assert "emergency_stop" not in peer.names()
        number = peer.begin_call("capability_request", {"tool": "emergency_stop", "reason": "need"})
        decide(second, server)
        peer.wait_changed(1)
        assert peer.answer(number)["result"]["isError"] is False
        assert "emergency_stop" in peer.names()
        number = peer.begin_call("tasks_create", {"title": "x"})
        question(second, server)
        peer.url = second.mcp_url
        peer.notify("notifications/cancelled", {"requestId": number})
        rows = "from mcp.models import AuditRow; print(AuditRow.objects.filter(outcome='cancelled').count())"
        wait_until(lambda: shell(server, rows) == "1", "the row")
        assert peer.answered(number) is None


def question(web: Web, server: Stack) -> str:
    """The id of the approval that waits."""
    headers = {"Authorization": f"Bearer {server.keys['operator']}"}

    def look() -> str | None:
        found = httpx.get(f"{web.url}/api/v1/approvals/?status=pending", headers=headers, timeout=60).json()["results"]
        return found[0]["id"] if found else None

    waiting: str = wait_until(look, "the question")
    return waiting


def decide(web: Web, server: Stack) -> None:
    """A person says yes."""
    url = f"{web.url}/api/v1/approvals/{question(web, server)}/decide/"
    headers = {"Authorization": f"Bearer {server.keys['operator']}"}
    httpx.post(url, json={"decision": "approve"}, headers=headers, timeout=60).raise_for_status()
