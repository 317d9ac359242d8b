"""Workspaces, the people in them, and their settings."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager


class Workspace(models.Model):
    """The tenant. Everything else belongs to one, or stands on the literal list of `agents.checks`."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=120)
    issue_prefix = models.CharField(max_length=8, default="AAC")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug


class Role(models.TextChoices):
    """What a person, or an operator key, may do. Each includes the ones before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    MANAGER = "manager"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """0 for a viewer up to 3 for an admin."""
        return list(Role).index(self)


class Membership(models.Model):
    """A person's role in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    objects = manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("workspace", "user"), name="one_membership_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.workspace_id}: {self.role}"


class PlatformSettings(models.Model):
    """What DuDuClaw keeps in config.toml, a section a column. One row a workspace."""

    SECTIONS = ("integrations", "responsibilities", "delegation", "container", "odoo", "memory", "rate")

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="settings")
    integrations = models.JSONField(default=dict, blank=True)
    responsibilities = models.JSONField(default=dict, blank=True)
    delegation = models.JSONField(default=dict, blank=True)
    container = models.JSONField(default=dict, blank=True)
    odoo = models.JSONField(default=dict, blank=True)
    memory = models.JSONField(default=dict, blank=True)
    rate = models.JSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)

    objects = manager()

    class Meta:
        verbose_name_plural = "platform settings"

    def __str__(self) -> str:
        return f"settings of {self.workspace_id}"


class FleetStop(models.Model):
    """Work is stopped: for all of a workspace, one department or one agent, until a person releases it."""

    class Scope(models.TextChoices):
        """What is stopped; `target` is the department's or the agent's name."""

        ALL = "all"
        DEPARTMENT = "department"
        AGENT = "agent"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    scope = models.CharField(max_length=16, choices=Scope.choices)
    target = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=500)
    stopped_by = models.CharField(max_length=120)
    stopped_at = models.DateTimeField()
    released_by = models.CharField(max_length=120, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)

    objects = manager()

    class Meta:
        ordering = ("-stopped_at",)

    def __str__(self) -> str:
        return f"{self.scope} {self.target}".strip()
