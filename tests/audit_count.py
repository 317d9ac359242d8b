"""How many rows a test's calls left in the record.

with rows_of(calls=3): ...              # three calls, whatever came of them
with rows_of(calls=1, events=1) as told: ...
assert told.calls[0].reason == "delegation_denied"
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp import audit
from mcp.models import AuditRow


@dataclass
class Told:
    """The rows that were written inside the block, oldest first."""

    calls: list[AuditRow] = field(default_factory=list)
    events: list[AuditRow] = field(default_factory=list)


@contextmanager
def rows_of(*, calls: int, events: int | None = None) -> Iterator[Told]:
    """Fail unless the block wrote exactly so many rows of calls, and of security events when `events` is given."""
    before, told = set(AuditRow.objects.values_list("uid", flat=True)), Told()
    yield told
    rows = list(AuditRow.objects.exclude(uid__in=before).order_by("id"))
    told.calls = [row for row in rows if row.stream == audit.CALLS]
    told.events = [row for row in rows if row.stream == audit.SECURITY]
    seen = [f"{row.stream} {row.tool} {row.outcome} {row.reason}" for row in rows]
    assert len(told.calls) == calls, f"{calls} calls, rows: {seen}"
    assert events is None or len(told.events) == events, f"{events} events, rows: {seen}"
