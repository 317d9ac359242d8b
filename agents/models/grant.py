"""Grants that die with their task, and the approvals that mint them or let one call through."""

from typing import ClassVar

from django.db import models

from agents.models.agent import Agent
from agents.models.workspace import Workspace
from agents.querysets import ApprovalQuerySet, GrantQuerySet
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager


class Approval(models.Model):
    """A question to a person: may this agent have this tool, or make exactly this call?"""

    class Kind(models.TextChoices):
        """What approval means: a grant is minted, or the one call with these arguments runs."""

        CAPABILITY_GRANT = "capability_grant"
        MCP_CALL = "mcp_call"

    class Status(models.TextChoices):
        """`expired` is also what a pending row past `expires_at` reads as."""

        PENDING = "pending"
        APPROVED = "approved"
        DENIED = "denied"
        EXPIRED = "expired"
        VOID = "void"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="approvals")
    kind = models.CharField(max_length=24, choices=Kind.choices)
    tool = models.CharField(max_length=64)
    call_tool = models.CharField(max_length=64)  # the tool whose call waits
    arguments = models.TextField()  # canonical JSON, redacted for show
    digest = models.CharField(max_length=64)  # sha256 of the canonical arguments as called
    summary = models.CharField(max_length=300, blank=True)
    task_id = models.CharField(max_length=36, blank=True)
    requested_by = models.CharField(max_length=120)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    decided_by = models.CharField(max_length=120, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=300, blank=True)
    void_reason = models.CharField(max_length=64, blank=True)
    consumed_at = models.DateTimeField(null=True, blank=True)

    objects = manager(ApprovalQuerySet)

    class Meta:
        ordering = ("-requested_at",)
        indexes: ClassVar = [models.Index(fields=("agent", "call_tool", "digest"))]

    def __str__(self) -> str:
        return f"{self.kind} {self.tool} for {self.requested_by}"


class Grant(models.Model):
    """A scoped tool, opened for an agent until it expires, is revoked, or its task ends."""

    class Source(models.TextChoices):
        """What minted it."""

        CAPABILITY_REQUEST = "capability_request"
        KICKOFF_APPROVAL = "kickoff_approval"
        TASK_CLAIM = "task_claim"
        OPERATOR = "operator"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=64)
    task_id = models.CharField(max_length=36, blank=True, db_index=True)
    granted_by = models.CharField(max_length=24, choices=Source.choices)
    approved_by = models.CharField(max_length=120, blank=True)
    approval = models.ForeignKey(Approval, null=True, blank=True, on_delete=models.SET_NULL, related_name="grants")
    granted_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoke_reason = models.CharField(max_length=32, blank=True)

    objects = manager(GrantQuerySet)

    class Meta:
        ordering = ("-granted_at",)
        indexes: ClassVar = [models.Index(fields=("agent", "tool"))]

    def __str__(self) -> str:
        return f"{self.tool} for {self.agent_id}"
