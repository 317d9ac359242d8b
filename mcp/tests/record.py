"""A record for tests: rows, blocks, and the rights of a superuser who drops the triggers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from conftest import AUDIT_TRIGGERS
from mcp import audit, seal, triggers
from mcp.audit import Row
from mcp.models import AuditRow, AuditSeal

SPACE = "0190a0e0-0000-7000-8000-000000000001"


def row(number: int, **over: str) -> Row:
    """A row as a call leaves it; every column has a text of its own."""
    columns = {
        "workspace": SPACE,
        "tool": "tasks_list",
        "outcome": "ok",
        "reason": f"reason-{number}",
        "agent": "analyst",
        "key": f"key-{number}",
        "scopes_provided": '["admin"]',
        "request_id": f"r{number}",
        "transport": "test",
        "ms": f"{number}.5",
        "arguments": f'{{"limit": {number}}}',
        "details": f'{{"target": "writer-{number}"}}',
    }
    return Row(audit.SECURITY if number % 5 == 0 else audit.CALLS, **{**columns, **over})


def write(count: int, start: int = 1) -> list[Row]:
    """So many committed rows."""
    return [audit.insert(row(number)) for number in range(start, start + count)]


def record(blocks: int = 3, rows: int = 5, start: int = 1) -> None:
    """A sealed record of so many blocks with so many rows each."""
    for block in range(blocks):
        write(rows, block * rows + start)
        assert seal.seal() == rows


def sql(text: str, *values: Any) -> int:
    """Run one statement; how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.rowcount


@contextmanager
def superuser() -> Iterator[None]:
    """Inside, no trigger guards the record."""
    with connection.cursor() as cursor:
        cursor.execute(AUDIT_TRIGGERS[connection.vendor])
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP TRIGGER {name}")
    try:
        yield
    finally:
        for statement in triggers.statements(connection.vendor):
            sql(statement)


def numbers() -> list[int]:
    """The numbers given so far."""
    return list(AuditSeal.objects.values_list("seq", flat=True))


def complete() -> bool:
    """Every row has one number, and the numbers have no gap."""
    sealed = list(AuditSeal.objects.values_list("row_uid", flat=True))
    rows = set(AuditRow.objects.values_list("uid", flat=True))
    return numbers() == list(range(1, len(rows) + 1)) and set(sealed) == rows and len(sealed) == len(rows)
