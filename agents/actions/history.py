"""Policy history: written in the transaction of the change, by every action that changes a right."""

from typing import Any

from agents.models import PolicyChange
from duduclaw.lib import clock
from mcp.policy import Who


def record(by: Who, subject: str, ref: str, name: str, field: str, before: Any, after: Any) -> None:
    """One line: `by` changed `field` of `name`."""
    PolicyChange.objects.create(
        workspace_id=by.workspace,
        subject=subject,
        ref=ref,
        name=name,
        field=field,
        changed_by=by.name,
        changed_at=clock.now(),
        before=before,
        after=after,
    )
