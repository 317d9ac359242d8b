"""Keeps child processes running: restarts with back-off, wakes on signals, ends in a given order."""

import logging
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from duduclaw.lib.processes import end, signal_group, spawn

FIRST_DELAY, LONGEST_DELAY, HEALTHY_AFTER = 0.5, 30.0, 60.0  # seconds
log = logging.getLogger("duduclaw.serve")


class Stopping(Exception):
    """SIGTERM or SIGINT arrived while the start was still waiting for something."""


@dataclass
class Service:
    """One child. `patience` is its time to end, in seconds; `popen` goes to `subprocess.Popen`."""

    name: str
    argv: Sequence[str]
    patience: float
    on_parent_death: signal.Signals = signal.SIGTERM
    popen: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started_at: float = 0.0
    due_at: float = 0.0

    def start(self, now: float) -> None:
        """Start it."""
        self.process = spawn(self.argv, on_parent_death=self.on_parent_death, **self.popen)
        self.started_at = now
        log.info("%s started as process %d", self.name, self.process.pid)

    def tend(self, now: float) -> None:
        """Notice that it died, and start it again when its time has come."""
        if self.process is not None and (code := self.process.poll()) is not None:
            signal_group(self.process, signal.SIGKILL)
            self.process = None
            if now - self.started_at >= HEALTHY_AFTER:
                self.failures = 0
            self._retry(now, f"ended with exit code {code}")
        elif self.process is None and now >= self.due_at:
            self.start(now)

    def _retry(self, now: float, why: str) -> None:
        delay = min(FIRST_DELAY * 2**self.failures, LONGEST_DELAY)
        self.failures = min(self.failures + 1, 16)
        self.due_at = now + delay
        log.error("%s: %s; next start in %.1f s", self.name, why, delay)

    def stop(self) -> None:
        """End it and all that it started."""
        if self.process is not None:
            code = end(self.process, self.patience)
            log.info("%s stopped with exit code %d", self.name, code)


def stop_together(services: Sequence[Service]) -> None:
    """Ask all of them to end, then wait for each."""
    for service in services:
        if service.process is not None:
            service.process.terminate()
    for service in services:
        service.stop()


class Bell:
    """Wakes a waiting supervisor when a child dies or when it is told to stop."""

    def __init__(self) -> None:
        self.stopping = False
        self._reader, self._writer = os.pipe()
        for end_of_pipe in (self._reader, self._writer):
            os.set_blocking(end_of_pipe, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reader, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def wait(self, seconds: float) -> None:
        """Until a signal arrives, at most `seconds`."""
        if self._selector.select(seconds):
            os.read(self._reader, 4096)

    def wait_for(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Whether `ready()` came true within `seconds`; raises `Stopping` when told to stop."""
        deadline = time.monotonic() + seconds
        while not self.stopping:
            if ready():
                return True
            if time.monotonic() >= deadline:
                return False
            self.wait(0.05)
        raise Stopping
