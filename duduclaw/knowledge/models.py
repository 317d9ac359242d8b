"""What an agent keeps between wakes: keys with a history, and one handoff note."""

from typing import ClassVar

from django.db import models

from agents.models import Agent, Workspace
from duduclaw.knowledge.querysets import KeyQuerySet, StateQuerySet
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager


class StateKey(models.Model):
    """One key of an agent's working state, as it stands."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="state_keys")
    key = models.CharField(max_length=64)
    value = models.CharField(max_length=400)
    reason = models.CharField(max_length=200)
    expires_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField()

    objects = manager(KeyQuerySet)

    class Meta:
        ordering = ("key",)
        constraints: ClassVar = [models.UniqueConstraint(fields=("agent", "key"), name="one_value_a_key")]

    def __str__(self) -> str:
        return self.key


class StateChange(models.Model):
    """One line of the history of an agent's working state."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="state_changes")
    key = models.CharField(max_length=64)
    action = models.CharField(max_length=16)  # set, clear, handoff
    value = models.TextField(blank=True)
    reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()

    objects = manager(StateQuerySet)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.action} {self.key}"


class Handoff(models.Model):
    """The note to an agent's next wake; structured when `status` is set."""

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, primary_key=True, related_name="handoff")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    note = models.TextField()
    status = models.CharField(max_length=16, blank=True)
    next_steps = models.TextField(blank=True)
    evidence = models.TextField(blank=True)
    blocker = models.TextField(blank=True)
    updated_at = models.DateTimeField()

    objects = manager(StateQuerySet)

    def __str__(self) -> str:
        return f"handoff of {self.agent_id}"
