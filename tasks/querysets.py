"""Reads of the board."""

from typing import Any, Self

from duduclaw.lib.owned import OwnedQuerySet


class TaskQuerySet(OwnedQuerySet):
    """Tasks of a workspace."""

    def named(self, ref: str) -> Self:
        """The task of that id or short number (`T-121`); none when the text is neither."""
        number = ref[2:] if ref[:2] in ("T-", "t-") else ""
        if number.isascii() and number.isdigit() and len(number) < 10:
            return self.filter(number=int(number))
        return self.filter(id=ref)

    def open(self) -> Self:
        """Not finished."""
        return self.exclude(status__in=("done", "failed", "cancelled", "stopped"))


class ActivityQuerySet(OwnedQuerySet):
    """The feed of a workspace."""

    def of(self, **wanted: Any) -> Self:
        """Only the rows that have all the given values; a None asks for nothing."""
        return self.filter(**{name: value for name, value in wanted.items() if value is not None})
