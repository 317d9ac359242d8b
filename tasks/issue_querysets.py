"""Reads of issues and comments, each in pages after a cursor."""

import re
from datetime import datetime
from typing import Any, Self

from django.db.models import Q

from duduclaw.lib.owned import HasWorkspace, OwnedQuerySet

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII | re.IGNORECASE)
KEY = re.compile(r"([A-Za-z][A-Za-z0-9]{0,7})-([1-9][0-9]{0,8})\Z", re.ASCII)


class IssueQuerySet(OwnedQuerySet):
    """Issues of a workspace."""

    def named(self, ref: str) -> Self:
        """The issue of that id or key (`AAC-42`); none when the text is neither."""
        if UUID.match(ref):
            return self.filter(id=ref.lower())
        key = KEY.match(ref)
        return self.filter(number=int(key[2]), workspace__issue_prefix__iexact=key[1]) if key else self.none()

    def of(self, *, status: str | None = None, assignee: str | None = None) -> Self:
        """Only those with the given values; a None asks for nothing."""
        wanted = {"status": status, "assignee": assignee}
        return self.filter(**{name: value for name, value in wanted.items() if value is not None})

    def matching(self, words: str) -> Self:
        """Those that have every word in title or text; % and _ are plain characters."""
        found = self
        for word in words.split():
            found = found.filter(Q(title__icontains=word) | Q(description__icontains=word))
        return found

    def newest(self, before: int | None = None) -> Self:
        """Newest first, those with a lower number than `before` only."""
        rows = self.order_by("-number")
        return rows if before is None else rows.filter(number__lt=before)

    def shown(self) -> Self:
        """With what a card shows of other rows."""
        return self.select_related("workspace", "task")


class CommentQuerySet(OwnedQuerySet):
    """Comments of a workspace."""

    def named(self, ref: str) -> Self:
        """The comment of that id; none when the text is no id."""
        return self.filter(id=ref.lower()) if UUID.match(ref) else self.none()

    def oldest(self, after: tuple[datetime, str] | None = None) -> Self:
        """Oldest first, those after the given instant and id only."""
        rows = self.order_by("created_at", "id")
        if after is None:
            return rows
        moment, last = after
        return rows.filter(Q(created_at__gt=moment) | Q(created_at=moment, id__gt=last))


class WakeQuerySet(OwnedQuerySet):
    """Wakes of a workspace."""

    def for_issue(self, who: HasWorkspace, issue: Any, agent: Any) -> Self:
        """Those that an assignment of this issue to this agent has queued, newest first."""
        return self.for_who(who).filter(issue=issue, agent=agent).order_by("-created_at", "-id")
