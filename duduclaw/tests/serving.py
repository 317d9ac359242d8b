"""`make run`'s supervisor in a process tree of its own, for tests that start, kill and end it."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from duduclaw.lib.processes import end, spawn
from tests.stack import clean_env, free_port, wait_until

WATCHDOG = 100.0  # seconds; ten times what the product promises
SERVE = [sys.executable, "-m", "duduclaw.serve"]


def processes_of(home: Path) -> dict[int, str]:
    """Every process whose state directory is `home`: process id -> command line. (Valkey overwrites its environment,
    but its command line names the socket.)"""
    mark = f"DUDUCLAW_HOME={home}\0".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
            if line and (str(home).encode() in line or mark in (entry / "environ").read_bytes()):
                found[int(entry.name)] = line.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found


@dataclass
class Serving:
    """A running supervisor."""

    home: Path
    env: dict[str, str]
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.env['PORT']}"

    def child(self, part: str) -> int | None:
        """The process whose command line holds `part`."""
        return next((pid for pid, line in processes_of(self.home).items() if part in line), None)

    def said(self) -> str:
        """Everything it and its children wrote so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def healthy(self) -> bool:
        """Whether Valkey, scheduler and worker are well, and the web process says so."""
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def wait_healthy(self) -> None:
        """Until `/healthz` answers 200; fails with the log."""
        wait_until(self.healthy, "a healthy server", WATCHDOG)

    def ages(self) -> dict[str, float]:
        """Seconds since the last sign of life of each part, as `/metrics` tells them."""
        try:
            text = httpx.get(f"{self.url}/metrics", timeout=5).text
        except httpx.TransportError:
            return {}
        return {part: float(age) for part, age in re.findall(r'pulse_age_seconds{part="(\w+)"} (\S+)', text)}

    def wait_pulse(self) -> None:
        """Until scheduler and worker have shown a sign of life that is younger than this call."""
        asked = time.monotonic()

        def both() -> bool:
            ages = self.ages()
            return len(ages) == 2 and max(ages.values()) < time.monotonic() - asked

        wait_until(both, "a sign of life of scheduler and worker", WATCHDOG)


def environment(home: Path, **env: str) -> dict[str, str]:
    """What the supervisor of `home` is started with, on a port of its own."""
    return clean_env(home, **{"PORT": str(free_port()), **env})


@contextmanager
def serving(home: Path, **env: str) -> Iterator[Serving]:
    """Start it and wait until it announces itself; end it afterwards, whatever the test did."""
    log = home / "serve.log"
    values = environment(home, **env)
    with log.open("wb") as output:
        process = spawn(SERVE, env=values, stdout=output, stderr=output)
    server = Serving(home, values, process, log)
    try:
        wait_until(lambda: "serves on" in server.said() or process.poll() is not None, "the start", WATCHDOG)
        assert process.poll() is None, server.said()
        yield server
    finally:
        end(process, WATCHDOG)


def try_to_serve(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Start a supervisor that is expected to refuse."""
    return subprocess.run(SERVE, env=env, capture_output=True, text=True, timeout=WATCHDOG)
