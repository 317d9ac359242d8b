"""What is configured, what is missing, how to mend it: one small function a subject."""

import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import redis
from django.conf import settings
from django.contrib.staticfiles import finders
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from agents.models import Key
from duduclaw import pulse
from duduclaw.lib import clock, lock, ports, valkey
from mcp import anchors, chain, seal
from mcp.models import AuditRow

WARN_BEFORE = timedelta(days=7)  # before a key ends
LITTLE, TOO_LITTLE = 1 << 30, 100 << 20  # bytes free on the disk of the state directory
OLDEST_CLOCK = datetime(2026, 1, 1, tzinfo=UTC)


class Level(StrEnum):
    """`fault` alone makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """What one check saw. `mend` is empty when there is nothing to do."""

    check: str
    level: Level
    says: str
    mend: str = ""

    def as_json(self) -> dict[str, str]:
        """For `--json`."""
        return asdict(self)


def good(check: str, says: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Level.OK, says)


def fault(check: str, says: str, mend: str) -> Finding:
    """Does not work until it is mended."""
    return Finding(check, Level.FAULT, says, mend)


def warning(check: str, says: str, mend: str) -> Finding:
    """Works, but not for long or not as it should."""
    return Finding(check, Level.WARNING, says, mend)


def private(path: Path) -> bool:
    """Whether nobody but the owner may touch it."""
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


def home() -> Iterator[Finding]:
    """The state directory and the secrets in it are for this user alone."""
    yield good("home", f"state is in {settings.HOME}")
    for path, mode in (
        (settings.HOME, "700"),
        *((settings.HOME / name, "600") for name in ("secret-key", "first-run.json")),
    ):
        if path.exists() and not private(path):
            yield fault("home", f"{path} can be read by other users", f"chmod {mode} {path}")


def disk() -> Iterator[Finding]:
    """Room for the database to grow."""
    free = shutil.disk_usage(settings.HOME).free
    text = f"{free >> 20} MiB free under {settings.HOME}"
    if free < TOO_LITTLE:
        yield fault("disk", text, "free some space, or move DUDUCLAW_HOME to a larger disk")
    elif free < LITTLE:
        yield warning("disk", text, "free some space soon")
    else:
        yield good("disk", text)


def unreachable(error: DatabaseError) -> Finding:
    """The database did not let us in; the driver's first line says why."""
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return fault(
        "database", f"DATABASE_URL: cannot use {place()}: {reason}", "start that server, or correct DATABASE_URL"
    )


def place() -> str:
    """The database as it may be shown."""
    parts = (connection.vendor, settings.DATABASES["default"].get("HOST"), settings.DATABASES["default"]["NAME"])
    return " ".join(str(part) for part in parts if part)


def database() -> Iterator[Finding]:
    """Reachable, and at the schema that this code expects."""
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        yield unreachable(error)
        return
    if pending:
        yield fault("database", f"{place()} lacks {len(pending)} migrations", "python manage.py migrate")
    else:
        yield good("database", f"{place()} answers and is migrated")


def broker() -> Iterator[Finding]:
    """Valkey or Redis: messages, notifications, locks."""
    where = ports.without_password(settings.REDIS_URL)
    if reason := valkey.fault(settings.REDIS_URL):
        mend = "start it, or unset REDIS_URL for the embedded one"
        if settings.EMBEDDED_VALKEY:
            mend = "start the server with `make run`"
        yield fault("valkey", f"no answer from {where}: {reason}", mend)
    else:
        yield good("valkey", f"{where} answers")


def port() -> Iterator[Finding]:
    """Free, or held by our own supervisor."""
    with lock.hold(settings.HOME / "serve.lock") as holder:
        if holder is not None:
            yield good("port", f"process {holder} serves from this state directory")
        elif reason := ports.listen_fault(settings.HOST, settings.PORT):
            yield fault("port", reason, "stop what uses it, or set PORT or HOST")
        else:
            yield good("port", f"{settings.HOST}:{settings.PORT} is free")


def keys() -> Iterator[Finding]:
    """Keys that have run out, or will within a week; keys of runs end by themselves."""
    now = clock.now()
    standing = Key.objects.system().filter(revoked_at=None).exclude(kind=Key.Kind.RUN).order_by("expires_at")
    ending = [key for key in standing if key.expires_at <= now + WARN_BEFORE]
    for key in ending:
        end = clock.stamp(key.expires_at)
        mend = f"python manage.py keys revoke {key.prefix}; python manage.py keys create for a new one"
        if key.expires_at <= now:
            yield fault("keys", f"the {key.kind} key {key.prefix} of {key.client_id} expired at {end}", mend)
        else:
            yield warning("keys", f"the {key.kind} key {key.prefix} of {key.client_id} expires at {end}", mend)
    if not ending:
        yield good("keys", f"{len(standing)} keys, none of which expires within {WARN_BEFORE.days} days")


def time_of_day() -> Iterator[Finding]:
    """Rights end by the clock, so it must not stand in the past."""
    now = clock.now()
    newest = AuditRow.objects.order_by("-id").values_list("timestamp", flat=True).first() or ""
    if now < OLDEST_CLOCK or newest > clock.stamp(now + timedelta(minutes=1)):
        yield fault("clock", f"{clock.stamp(now)} is before the newest audit row ({newest})", "set the system's clock")
    else:
        yield good("clock", clock.stamp(now))


def record() -> Iterator[Finding]:
    """The head of the audit: sealed with our key, and not behind the file that is kept beside the database."""
    head = seal.newest(seal.BLOCKS)
    mend = "python manage.py audit verify; then restore the secret key or the database from a backup"
    try:
        known = max((anchor.last for anchor in anchors.read(anchors.path())), default=0)
    except FileNotFoundError:
        known = 0
    except anchors.BadAnchor as error:
        yield fault("audit", str(error), mend)
        return
    if head.last and not chain.same(head.mac, head.signed(settings.AUDIT_KEY)):
        yield fault("audit", f"block {head.first} to {head.last} was not sealed with this secret key", mend)
    elif known > head.last:
        yield fault("audit", f"{known} rows were sealed, the database knows {head.last}: its tail is gone", mend)
    else:
        yield good("audit", f"{head.last} rows are sealed")


def pages() -> Iterator[Finding]:
    """Static files of the admin."""
    if finders.find("admin/css/base.css"):
        yield good("static files", "found")
    else:
        yield fault("static files", "the admin's style sheets are missing", "make setup")


def first_run() -> Iterator[Finding]:
    """The file that makes `/readyz` answer 200."""
    path = settings.HOME / "first-run.json"
    if path.exists():
        yield good("first run", f"done; {path} holds names and keys")
    else:
        yield warning("first run", "not done yet", "make run")


def life() -> Iterator[Finding]:
    """Scheduler and worker, when they should run."""
    with lock.hold(settings.HOME / "serve.lock") as holder:
        if holder is None:
            yield good("scheduler and worker", "the server does not run")
            return
    try:
        faults = pulse.faults(pulse.ages())
    except (redis.RedisError, OSError):
        return  # `broker` has said so
    for part in pulse.PARTS:
        if part in faults:
            yield fault(part, faults[part], "read the server's output: it is restarted when it dies")
        else:
            yield good(part, "works")


Check = Callable[[], Iterator[Finding]]
ALONE: tuple[Check, ...] = (home, disk, broker, port, pages, first_run, life)
WITH_DATABASE: tuple[Check, ...] = (keys, time_of_day, record)


def examine() -> list[Finding]:
    """Everything; what needs the database is left out when that cannot be used."""
    findings = [finding for check in ALONE for finding in check()]
    found = list(database())
    findings += found
    if all(finding.level is Level.OK for finding in found):
        findings += [finding for check in WITH_DATABASE for finding in check()]
    return findings
