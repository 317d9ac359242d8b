"""Fixtures for every test: services, a real server, and a flush that the audit table's triggers let through."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db.backends.postgresql.base import DatabaseWrapper as Postgres
from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite

from duduclaw.lib import rate
from mcp.transports import edge
from tests.live import Live, serving
from tests.services import need, postgres_url
from tests.stack import CLEANUP, Stack, new_database, start_valkey

pytest_plugins = ["tests.case_results", "tests.reports"]

AUDIT_TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type='trigger' AND name LIKE 'ddc_audit_%'",
    "postgresql": "SELECT tgname || ' ON ' || tgrelid::regclass FROM pg_trigger WHERE tgname LIKE 'ddc_audit_%'",
}


def let_flush_through(operations: type[Any]) -> None:
    """Between transactional tests the tables are emptied; the triggers that forbid it come back by post_migrate."""
    flush = operations.sql_flush

    def sql_flush(self: Any, *args: Any, **kwargs: Any) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(AUDIT_TRIGGERS[self.connection.vendor])
            drops = [f"DROP TRIGGER {name}" for (name,) in cursor.fetchall()]
        return [*drops, *flush(self, *args, **kwargs)]

    operations.sql_flush = sql_flush


let_flush_through(Sqlite.ops_class)
let_flush_through(Postgres.ops_class)


def pytest_unconfigure() -> None:
    """Remove what outlives a test: databases and state directories that stacks copy."""
    CLEANUP.close()


@pytest.fixture(scope="session")
def valkey() -> Iterator[str]:
    """A private Valkey at the address in `settings.REDIS_URL`."""
    with start_valkey(Path(django_settings.HOME)):
        yield django_settings.REDIS_URL


@pytest.fixture
def mcp_server(valkey: str, transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """The real ASGI application on a free port, in this process and over the test's database."""
    settings.PORT = settings.PORT
    monkeypatch.setattr(edge, "strangers", rate.Limiter({"unauthenticated": edge.STRANGERS}))
    with serving() as live:
        yield live


@pytest.fixture(scope="session")
def pg_server() -> str:
    """Address of a PostgreSQL server on which databases may be created."""
    return need("PostgreSQL", postgres_url())


@pytest.fixture
def pg_database(pg_server: str) -> Iterator[str]:
    """Address of an empty database that is dropped afterwards."""
    with new_database(pg_server) as url:
        yield url


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty state directory with a path short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="ddc-home-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def stacks() -> Iterator[dict[str, Stack]]:
    """The shared servers of this test process, one an engine, started on first use."""
    running: dict[str, Stack] = {}
    yield running
    for stack in running.values():
        stack.close()


@pytest.fixture
def stack(stacks: dict[str, Stack]) -> Callable[[str], Stack]:
    """`stack("sqlite")` or `stack("postgres")`: a running, seeded server that tests share."""

    def get(engine: str) -> Stack:
        if engine not in stacks:
            stacks[engine] = Stack.start(engine)
        return stacks[engine]

    return get


@pytest.fixture
def new_stack() -> Iterator[Callable[..., Stack]]:
    """As `stack`, but a server of the test's own, which it may starve, stop or kill."""
    running: list[Stack] = []

    def start(engine: str, **env: str) -> Stack:
        running.append(Stack.start(engine, **env))
        return running[-1]

    yield start
    for stack in running:
        stack.close()
