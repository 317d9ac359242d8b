"""Reads of the record for pages, REST and exports: which rows, and how one is shown."""

import json
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from mcp import audit
from mcp.models import AuditRow

FILTERS = frozenset({"stream", "agent", "tool", "outcome", "reason", "key", "request_id", "transport"})


def rows(workspace: str, *, since: str = "", until: str = "", **filters: str) -> QuerySet[AuditRow]:
    """The rows of one workspace, newest first. `since` and `until` (exclusive) are stamps of `clock.stamp`.

    Other filters name a column of `FILTERS`; blank ones ask for nothing, unknown ones raise `TypeError`.
    """
    if unknown := set(filters) - FILTERS:
        raise TypeError(f"no filter named {', '.join(sorted(unknown))}")
    found = AuditRow.objects.filter(workspace=workspace, **{name: text for name, text in filters.items() if text})
    found = found.filter(timestamp__gte=since) if since else found
    return found.filter(timestamp__lt=until) if until else found


def shown(row: AuditRow) -> dict[str, Any]:
    """A row as other programs see it."""
    return typed({column: getattr(row, column) for column in audit.COLUMNS})


def typed(columns: Mapping[str, str]) -> dict[str, Any]:
    """The same from the columns' text: `ms` is a number, scopes a list, arguments and details are JSON."""
    plain = ("stream", "timestamp", "tool", "outcome", "reason", "agent", "key", "request_id", "transport")
    return {
        "id": columns["uid"],
        **{name: columns[name] for name in plain},
        "scopes_provided": parsed(columns["scopes_provided"], []),
        "ms": parsed(columns["ms"], None),
        "arguments": parsed(columns["arguments"], {}),
        "details": parsed(columns["details"], {}),
    }


def parsed(text: str, absent: Any) -> Any:
    """JSON from a column; what is none stays text."""
    if not text:
        return absent
    try:
        return json.loads(text)
    except ValueError:
        return text
