"""Writes in flight when the server is told to stop: each was answered and is in the database, or neither."""

import signal
import threading
from collections.abc import Callable

import httpx
import pytest

from tests.stack import WATCHDOG, Stack
from tests.wire_clients import CLIENTS, Peer

WRITERS = 20
TITLES = "from tasks.models import Task; print(*Task.objects.system().values_list('title', flat=True), sep='\\n')"


class Writer(threading.Thread):
    """Creates one task after the other until the link ends; knows which were answered."""

    def __init__(self, peer: Peer, name: str, under_way: threading.Barrier) -> None:
        super().__init__(daemon=True)
        self.peer, self.label, self.under_way = peer, name, under_way
        self.answered: set[str] = set()

    def run(self) -> None:
        """The first answer of all opens the barrier; the server is told to stop while all go on."""
        for number in range(10_000):
            title = f"{self.label}-{number}"
            try:
                frame = self.peer.call("tasks_create", {"title": title})
            except (AssertionError, OSError, httpx.HTTPError):
                return
            if "result" not in frame or frame["result"].get("isError"):
                return
            self.answered.add(title)
            if number == 0:
                self.under_way.wait(WATCHDOG)


@pytest.mark.parametrize("transport", ["http", "ws"])
def test_each_write_in_flight_is_answered_and_kept_or_neither(new_stack: Callable[..., Stack], transport: str) -> None:
    server = new_stack("sqlite")
    before = set(server.manage("shell", "--no-imports", "-c", TITLES).stdout.splitlines())
    under_way = threading.Barrier(WRITERS + 1)
    links = [CLIENTS[transport](server.url, server.keys["operator"]) for _ in range(WRITERS)]
    peers = [link.__enter__() for link in links]
    writers = [Writer(peer, f"{transport}-{index}", under_way) for index, peer in enumerate(peers)]
    try:
        for writer, peer in zip(writers, peers, strict=True):
            peer.initialize()
            writer.start()
        under_way.wait(WATCHDOG)
        server.webs[0].process.send_signal(signal.SIGTERM)
        server.webs[0].process.wait(WATCHDOG)
        for writer in writers:
            writer.join(WATCHDOG)
            assert not writer.is_alive()
    finally:
        for link in links:
            link.__exit__(None, None, None)
    kept = set(server.manage("shell", "--no-imports", "-c", TITLES).stdout.splitlines()) - before
    answered = set().union(*(writer.answered for writer in writers))
    assert len(answered) >= WRITERS
    assert kept == answered
