"""A real server in processes of its own, for tests that talk through sockets.

`Stack.start(engine)` copies a database that was migrated and seeded once a test process, so a second one is quick.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import psycopg

from duduclaw.lib import valkey
from duduclaw.lib.processes import end, spawn
from tests.services import ROOT, need, postgres_url

WATCHDOG = 60.0  # seconds; far above what anything here takes
OURS = ("DUDUCLAW_", "DATABASE_URL", "REDIS_URL", "PORT", "HOST", "DJANGO_SETTINGS_MODULE", "PYTEST_", "LOG_LEVEL")


def wait_until(ready: Callable[[], Any], what: str, seconds: float = WATCHDOG) -> Any:
    """The first truthy answer of `ready()`; fails with `what` when the watchdog barks."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := ready():
            return answer
        threading.Event().wait(0.02)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")


def free_port() -> int:
    """A port that nobody listens on, outside the range from which the kernel picks for clients."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def clean_env(home: Path, **extra: str) -> dict[str, str]:
    """The environment of a production process whose state is in `home`; nothing of the test run leaks in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "DUDUCLAW_HOME": str(home), "DUDUCLAW_KEY_ENVIRONMENT": "test", "PYTHONPATH": str(ROOT), **extra}


def manage(env: dict[str, str], *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a management command as an operator would; `check=False` to look at a refusal."""
    options = {"check": True, "timeout": WATCHDOG * 2, **options}
    argv = [sys.executable, str(ROOT / "manage.py"), *args]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, **{**options, "check": False})
    if options["check"] and done.returncode:
        raise AssertionError(f"{args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


@contextmanager
def start_valkey(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A private Valkey on the socket that `home` has by rule."""
    home.mkdir(parents=True, exist_ok=True)
    server = need("Valkey", valkey.binary())
    process = spawn(valkey.command(server, home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"unix://{valkey.socket_path(home)}?db=0"
        wait_until(lambda: not valkey.fault(address), "Valkey")
        yield process
    finally:
        end(process, 5.0)


@contextmanager
def new_database(server: str, template: str = "template1") -> Iterator[str]:
    """Address of a new database on the PostgreSQL server at `server`."""
    name = f"ddc_{os.getpid()}_{random.SystemRandom().randrange(16**8):08x}"
    base = server.rsplit("/", 1)[0]
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield f"{base}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


CLEANUP = ExitStack()  # closed at the end of the test process


@cache
def template(engine: str) -> dict[str, str]:
    """The environment of a migrated database with the first-run company, made once and copied by every stack."""
    home = Path(tempfile.mkdtemp(prefix="ddc-template-"))
    CLEANUP.callback(shutil.rmtree, home, ignore_errors=True)
    env = clean_env(home)
    if engine == "postgres":
        env["DATABASE_URL"] = CLEANUP.enter_context(new_database(need("PostgreSQL", postgres_url())))
    manage(env, "first_run")
    return env


@dataclass
class Web:
    """One web process."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def ws_url(self) -> str:
        """Where WebSocket clients connect."""
        return f"{self.url.replace('http', 'ws', 1)}/ws/mcp/"

    @property
    def mcp_url(self) -> str:
        """Where HTTP clients connect."""
        return f"{self.url}/mcp"


@dataclass
class Stack:
    """Valkey and one or more web processes over one seeded database."""

    engine: str
    home: Path
    env: dict[str, str]
    first_run: dict[str, Any]
    webs: list[Web] = field(default_factory=list)
    _valkey: ExitStack = field(default_factory=ExitStack)
    _cleanup: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def start(cls, engine: str, **env: str) -> "Stack":
        """`engine` is `sqlite` or `postgres`; `env` is added to the server's environment."""
        made = template(engine)
        home = Path(tempfile.mkdtemp(prefix="ddc-stack-"))
        shutil.copytree(made["DUDUCLAW_HOME"], home, dirs_exist_ok=True)
        stack = cls(engine, home, clean_env(home, **env), json.loads((home / "first-run.json").read_bytes()))
        stack._cleanup.callback(shutil.rmtree, home, ignore_errors=True)
        if engine == "postgres":
            server, name = made["DATABASE_URL"].rsplit("/", 1)
            copy = new_database(f"{server}/postgres", name)
            stack.env["DATABASE_URL"] = stack._cleanup.enter_context(copy)
        try:
            stack.start_valkey()
            stack.start_web()
        except BaseException:
            stack.close()
            raise
        return stack

    @property
    def url(self) -> str:
        """`http://127.0.0.1:port` of the first web process."""
        return self.webs[0].url

    @property
    def mcp_url(self) -> str:
        """Streamable HTTP of the first web process."""
        return self.webs[0].mcp_url

    @property
    def ws_url(self) -> str:
        """WebSocket of the first web process."""
        return self.webs[0].ws_url

    @property
    def keys(self) -> dict[str, str]:
        """`operator`, `lead`, `analyst`, `external` of the first-run company."""
        keys: dict[str, str] = self.first_run["keys"]
        return keys

    def manage(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """A management command on this stack's state."""
        return manage(self.env, *args, **options)

    def start_web(self) -> Web:
        """One more web process on a port of its own; ready when this returns."""
        port = free_port()
        log = self.home / f"web-{port}.log"
        with log.open("wb") as output:
            process = spawn(
                [sys.executable, "-m", "duduclaw.web"],
                env={**self.env, "PORT": str(port)},
                stdout=output,
                stderr=output,
            )
        web = Web(f"http://127.0.0.1:{port}", process, log)
        self.webs.append(web)
        wait_until(lambda: self._ready(web), f"the web process, whose log is\n{log.read_text(errors='replace')}")
        return web

    @staticmethod
    def _ready(web: Web) -> bool:
        if web.process.poll() is not None:
            raise AssertionError(f"the web process ended:\n{web.log.read_text(errors='replace')}")
        try:
            return httpx.get(f"{web.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def start_valkey(self) -> None:
        """Start it, or start it again after `stop_valkey`."""
        self._valkey.enter_context(start_valkey(self.home))

    def stop_valkey(self) -> None:
        """End it; the web processes stay."""
        self._valkey.close()

    def log(self) -> str:
        """What all web processes wrote so far."""
        return "".join(web.log.read_text(encoding="utf-8", errors="replace") for web in self.webs)

    def close(self) -> None:
        """End every process and remove the state."""
        for web in self.webs:
            end(web.process, 10.0)
        self.stop_valkey()
        self._cleanup.close()
