"""Agents, and what they may use: one row of capabilities and one of permissions each."""

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models

from agents.models.workspace import Workspace
from agents.querysets import AgentQuerySet
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager

NEW_NAME = r"\A[a-z0-9-]{1,64}\Z"


class Agent(models.Model):
    """An AI employee. Its public id is `name`; a removed one keeps its row as the trash entry."""

    class Status(models.TextChoices):
        """`paused` sees an empty list; keys of `removed` and `terminated` no longer open anything."""

        ACTIVE = "active"
        PAUSED = "paused"
        TERMINATED = "terminated"
        REMOVED = "removed"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=64, validators=[RegexValidator(NEW_NAME)])
    name_key = models.CharField(max_length=128, editable=False)  # NFKC and casefolded: what is unique
    display_name = models.CharField(max_length=120)
    role = models.CharField(max_length=64, blank=True)
    department = models.CharField(max_length=64, blank=True)
    reports_to = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="reports")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.ACTIVE)
    preset = models.CharField(max_length=64, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = manager(AgentQuerySet)

    class Meta:
        ordering = ("name",)
        constraints: ClassVar = [
            # A removed agent keeps its name reserved for MCP callers; a person may reuse it.
            models.UniqueConstraint(
                fields=("workspace", "name_key"),
                condition=~models.Q(status="removed"),
                name="one_living_agent_a_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Capabilities(models.Model):
    """`[capabilities]` and `[fork]` of an agent. A new agent has every switch off and every list empty."""

    LISTS = (
        "allowed_tools",
        "denied_tools",
        "scoped_tools",
        "approval_required_tools",
        "irreversible_tools",
        "maybe_irreversible_tools",
    )
    SWITCHES = ("os_native", "recording", "system_operator", "codrive", "computer_use", "fork", "static_catalog")

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, primary_key=True, related_name="capabilities")
    allowed_tools = models.JSONField(default=list, blank=True)
    denied_tools = models.JSONField(default=list, blank=True)
    scoped_tools = models.JSONField(default=list, blank=True)
    approval_required_tools = models.JSONField(default=list, blank=True)
    irreversible_tools = models.JSONField(default=list, blank=True)
    maybe_irreversible_tools = models.JSONField(default=list, blank=True)
    os_native = models.BooleanField(default=False)
    recording = models.BooleanField(default=False)
    system_operator = models.BooleanField(default=False)
    codrive = models.BooleanField(default=False)
    computer_use = models.BooleanField(default=False)
    fork = models.BooleanField(default=False)
    static_catalog = models.BooleanField(default=False)
    db_sources = models.JSONField(default=list, blank=True)
    grant_ttl_secs = models.IntegerField(default=3600)
    auto_approve_install = models.BooleanField(default=False)
    computer_use_mode = models.CharField(max_length=16, default="container")
    computer_use_config = models.JSONField(default=dict, blank=True)

    objects = models.Manager()

    class Meta:
        verbose_name_plural = "capabilities"

    def __str__(self) -> str:
        return f"capabilities of {self.agent_id}"


class Permissions(models.Model):
    """`[permissions]` of an agent. Null is a missing key and allows; only JSON true and null allow."""

    FLAGS = ("can_create_agents", "can_send_cross_agent", "can_schedule_tasks", "can_modify_own_skills")

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, primary_key=True, related_name="permissions")
    can_create_agents = models.JSONField(null=True, blank=True, default=None)
    can_send_cross_agent = models.JSONField(null=True, blank=True, default=None)
    can_schedule_tasks = models.JSONField(null=True, blank=True, default=None)
    can_modify_own_skills = models.JSONField(null=True, blank=True, default=None)

    objects = models.Manager()

    class Meta:
        verbose_name_plural = "permissions"

    def __str__(self) -> str:
        return f"permissions of {self.agent_id}"
