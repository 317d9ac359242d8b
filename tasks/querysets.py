"""Reads of the board."""

import re
from typing import Any, Self

from duduclaw.lib.owned import OwnedQuerySet

REF = re.compile(r"[A-Za-z0-9_-]{1,64}\Z", re.ASCII)
FINISHED = ("done", "failed", "cancelled", "stopped")
NUMBER = re.compile(r"[Tt]-([0-9]{1,9})\Z", re.ASCII)


def number_of(ref: str) -> int | None:
    """121 for `T-121`; None when the text is no short number."""
    found = NUMBER.match(ref)
    return int(found[1]) if found else None


class TaskQuerySet(OwnedQuerySet):
    """Tasks of a workspace."""

    def named(self, ref: str) -> Self:
        """The task of that id or short number (`T-121`); none when the text is neither."""
        if not REF.match(ref):
            return self.none()
        number = number_of(ref)
        return self.filter(id=ref) if number is None else self.filter(number=number)

    def open(self) -> Self:
        """Not finished."""
        return self.exclude(status__in=FINISHED)

    def of(self, *, assigned_to: str | None = None, status: str | None = None, priority: str | None = None) -> Self:
        """The cards that have all the given values (agents by name); a None asks for nothing."""
        wanted = {"assigned_to__name": assigned_to, "status": status, "priority": priority}
        return self.filter(**{name: value for name, value in wanted.items() if value is not None})

    def shown(self) -> Self:
        """With the agents whose names a card shows."""
        return self.select_related("assigned_to", "claimed_by", "parent")

    def lapsed(self, now: Any) -> Self:
        """Held under a lease that has passed."""
        return self.filter(status="in_progress", lease_expires_at__lte=now)


class ActivityQuerySet(OwnedQuerySet):
    """The feed of a workspace."""

    def of(self, **wanted: Any) -> Self:
        """Only the rows that have all the given values; a None asks for nothing."""
        return self.filter(**{name: value for name, value in wanted.items() if value is not None})
