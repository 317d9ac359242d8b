"""The manager of every tenant model: nothing is read without saying for whom.

`for_who(who)` sees one workspace; `system()` sees all and is for jobs, migrations and principals, so that
a grep for it lists every place that crosses workspaces (a shape test refuses `objects.filter` and friends).
"""

from typing import Any, Protocol, Self

from django.db import models


class HasWorkspace(Protocol):
    """A principal, as far as tenancy is concerned."""

    @property
    def workspace(self) -> str: ...


class OwnedQuerySet(models.QuerySet[Any]):
    """Reads of one workspace; subclasses add the domain's own questions."""

    def for_who(self, who: HasWorkspace) -> Self:
        """The rows of the principal's workspace."""
        return self.filter(workspace_id=who.workspace)


class OwnedManager(models.Manager[Any]):
    """`objects` of every model with a workspace."""

    def system(self) -> Any:
        """Every workspace's rows."""
        return self.get_queryset()

    def all(self) -> Any:
        """Only of a related manager, which is bound to one row; else say `for_who(who)` or `system()`."""
        if hasattr(self, "instance"):
            return super().all()
        raise AttributeError("say for_who(who) or system() instead of all()")


def manager(queryset: type[OwnedQuerySet] = OwnedQuerySet) -> Any:
    """The `objects` of a tenant model, with the reads of its queryset class."""
    return OwnedManager.from_queryset(queryset)()
