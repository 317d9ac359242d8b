"""Reads of an agent's working state."""

from datetime import datetime
from typing import Self

from django.db.models import Q

from duduclaw.lib.owned import OwnedQuerySet
from mcp.policy import Who


class StateQuerySet(OwnedQuerySet):
    """What belongs to the calling agent; no principal reads another's."""

    def mine(self, who: Who) -> Self:
        """The rows of the caller itself; none for a caller that is no agent."""
        return self.for_who(who).filter(agent_id=who.agent) if who.agent else self.none()


class KeyQuerySet(StateQuerySet):
    """Keys of a working state."""

    def standing(self, now: datetime) -> Self:
        """Those that have not expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now))

    def lapsed(self, now: datetime) -> Self:
        """Those that have."""
        return self.filter(expires_at__lte=now)
