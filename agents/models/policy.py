"""Version numbers that caches hang on, and the history of every change of policy."""

from typing import Any, ClassVar

from django.db import models

from agents.models.workspace import Workspace
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager


class Version(models.Model):
    """How often what decides for (`kind`, `ref`) has changed. Written by database triggers alone."""

    kind = models.CharField(max_length=16)
    ref = models.CharField(max_length=64)
    n = models.BigIntegerField()

    objects = models.Manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=("kind", "ref"), name="one_version_a_thing")]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}: {self.n}"


class PolicyChange(models.Model):
    """Who changed what decides for whom, when, from what to what. Never updated."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    subject = models.CharField(max_length=16)  # agent, settings, key, grant, stop, membership
    ref = models.CharField(max_length=64)  # the row's id
    name = models.CharField(max_length=120)  # what people call it
    field = models.CharField(max_length=64)
    changed_by = models.CharField(max_length=120)
    changed_at = models.DateTimeField()
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    objects = manager()

    class Meta:
        ordering = ("-changed_at",)
        indexes: ClassVar = [models.Index(fields=("workspace", "ref", "field"))]

    def __str__(self) -> str:
        return f"{self.name}.{self.field} by {self.changed_by}"

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: history is kept."""
        raise TypeError("policy history is never deleted")
