"""Reads of agents, grants and approvals. They see one workspace; `living` and `active` say what counts."""

from datetime import datetime
from typing import Self

from duduclaw.lib.owned import OwnedQuerySet


class AgentQuerySet(OwnedQuerySet):
    """Agents of a workspace."""

    def living(self) -> Self:
        """Neither removed nor terminated."""
        return self.exclude(status__in=("removed", "terminated"))


class GrantQuerySet(OwnedQuerySet):
    """Grants of a workspace."""

    def active(self, now: datetime) -> Self:
        """Neither revoked nor past their end."""
        return self.filter(revoked_at=None, expires_at__gt=now)


class ApprovalQuerySet(OwnedQuerySet):
    """Approvals of a workspace."""

    def open(self, now: datetime) -> Self:
        """Pending, and not past their end."""
        return self.filter(status="pending", expires_at__gt=now)
