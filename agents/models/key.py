"""Keys: the only proof of identity over MCP."""

from typing import ClassVar

from django.db import models

from agents.models.agent import Agent
from agents.models.workspace import Role, Workspace
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager


class Key(models.Model):
    """`ddc_<env>_<32 hex>`, shown once; kept as prefix and SHA-256."""

    class Kind(models.TextChoices):
        """Whom the key speaks for; see product.md, principals."""

        AGENT = "agent"
        RUN = "run"
        OPERATOR = "operator"
        EXTERNAL = "external"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="keys")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.CASCADE, related_name="keys")
    client_id = models.CharField(max_length=64, help_text="who acts: the agent, the operator or the client")
    label = models.CharField(max_length=120, blank=True)
    prefix = models.CharField(max_length=24, unique=True)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(default=list, blank=True)
    role = models.CharField(max_length=16, choices=Role.choices, blank=True)
    task_id = models.CharField(max_length=36, blank=True)
    created_by = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=120, blank=True)

    objects = manager()

    class Meta:
        ordering = ("-created_at",)
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(kind__in=("agent", "run"), agent__isnull=False)
                | models.Q(kind__in=("operator", "external"), agent__isnull=True),
                name="agent_and_run_keys_have_an_agent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.kind})"
