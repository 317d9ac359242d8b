"""SIGTERM with writes in flight: each was answered and is in the database, or neither."""

import json
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.stack import WATCHDOG, Stack, wait_until
from tests.wire_clients import HttpPeer, Peer, WsPeer, http_client, ws_client

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
WRITES = 20
TITLES = "from tasks.models import Task; import json; print(json.dumps(list(Task.objects.system().values_list('title', flat=True))))"  # noqa: E501


def titles(server: Stack) -> set[str]:
    """What stands on the board."""
    return set(json.loads(server.manage("shell", "--no-imports", "-c", TITLES).stdout))


def write_on(peer: Peer, name: str, answered: set[str], going: threading.Event) -> None:
    """Create tasks one after the other until the server is gone, and note each that was answered."""
    for number in range(10_000):
        title = f"{name}-{number}"
        try:
            frame = peer.call("tasks_create", {"title": title})
        except (AssertionError, ConnectionClosed, httpx.TransportError):
            return
        if "result" not in frame:
            return
        answered.add(title)
        going.set()


def refused(peer: HttpPeer) -> bool:
    """Whether its last request was told to come again, or found nobody any more."""
    return peer.ended == 503 or str(peer.ended).startswith("lost: ")


@pytest.mark.parametrize("engine", ENGINES)
def test_20_writes_in_flight_at_sigterm_are_answered_and_kept_or_neither(
    new_stack: Callable[..., Stack], engine: str
) -> None:
    server = new_stack(engine)
    answered: set[str] = set()
    with ExitStack() as clients:
        writers: list[tuple[threading.Thread, threading.Event]] = []
        peers: list[Peer] = []
        for number in range(WRITES):
            connect = (ws_client, http_client)[number % 2]
            peer = clients.enter_context(connect(server.url, server.keys["lead"]))
            peer.initialize()
            peers.append(peer)
            going = threading.Event()
            thread = threading.Thread(target=write_on, args=(peer, f"w{number}", answered, going), daemon=True)
            writers.append((thread, going))
        for thread, _ in writers:
            thread.start()
        assert all(going.wait(WATCHDOG) for _, going in writers)
        server.webs[0].process.send_signal(signal.SIGTERM)
        server.webs[0].process.wait(WATCHDOG)
        for thread, _ in writers:
            thread.join(WATCHDOG)
        assert {peer.ended for peer in peers if isinstance(peer, WsPeer)} == {1001}
        assert {refused(peer) for peer in peers if isinstance(peer, HttpPeer)} == {True}
    written = {title for title in titles(server) if title.startswith("w")}
    assert written == answered and len(answered) >= WRITES
    assert "Traceback" not in server.log()


def test_parked_calls_end_as_pending_and_the_process_ends_in_time(new_stack: Callable[..., Stack]) -> None:
    server = new_stack("sqlite")
    scope = (
        "from agents.models import Capabilities; "
        "Capabilities.objects.filter(agent__name='lead').update(approval_required_tools=['tasks_create'])"
    )
    server.manage("shell", "--no-imports", "-c", scope)
    with ws_client(server.url, server.keys["lead"]) as peer:
        peer.initialize()
        number = peer.begin_call("tasks_create", {"title": "x"}, token="p")
        count = "from agents.models import Approval; print(Approval.objects.system().count())"
        wait_until(lambda: server.manage("shell", "--no-imports", "-c", count).stdout.strip() == "1", "the question")
        server.webs[0].process.send_signal(signal.SIGTERM)
        assert peer.answer(number)["result"]["structuredContent"]["error"] == "approval_pending"
        assert peer.wait_ended() == 1001
        server.webs[0].process.wait(WATCHDOG)
