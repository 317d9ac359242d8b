"""Keys, grants and approvals."""

from typing import Any

from rest_framework import serializers

from agents.models import Grant, Key, Role
from duduclaw.api.serializers.common import Moment, Named
from duduclaw.lib import clock


class KeySerializer(serializers.ModelSerializer[Key]):
    """A key without its secret."""

    agent = Named(allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = Moment()
    expires_at = Moment()
    revoked_at = Moment(allow_null=True)

    class Meta:
        model = Key
        fields = (
            "id", "kind", "agent", "client_id", "label", "prefix", "scopes", "role", "task_id", "created_by",
            "created_at", "expires_at", "revoked_at", "revoked_by",
        )  # fmt: skip


class KeyDraft(serializers.Serializer[Any]):
    """A new key."""

    kind = serializers.ChoiceField(choices=Key.Kind.choices)
    agent = serializers.CharField(required=False, help_text="For agent and run keys.")
    scopes = serializers.ListField(child=serializers.CharField(), required=False)
    role = serializers.ChoiceField(choices=Role.choices, required=False, help_text="For operator keys.")
    client_id = serializers.CharField(max_length=64, required=False)
    label = serializers.CharField(max_length=120, required=False)  # type: ignore[assignment]
    expires_at = serializers.DateTimeField(required=False, help_text="30 days when absent, at most 365.")


class NewKey(serializers.Serializer[Any]):
    """The key, shown this once."""

    id = serializers.CharField()
    key = serializers.CharField()
    prefix = serializers.CharField()
    expires_at = Moment()


class GrantSerializer(serializers.ModelSerializer[Grant]):
    """A grant; `active` as of now."""

    agent = Named()
    task_id = serializers.CharField(allow_null=True)
    approval_id = serializers.CharField(allow_null=True)
    granted_at = Moment()
    expires_at = Moment()
    revoked_at = Moment(allow_null=True)
    active = serializers.SerializerMethodField()

    class Meta:
        model = Grant
        fields = (
            "id", "agent", "tool", "task_id", "granted_by", "approved_by", "approval_id", "granted_at", "expires_at",
            "revoked_at", "revoke_reason", "active",
        )  # fmt: skip

    def get_active(self, grant: Grant) -> bool:
        """Neither revoked nor past its end."""
        return grant.revoked_at is None and grant.expires_at > clock.now()

    def to_representation(self, instance: Grant) -> dict[str, Any]:
        return {**super().to_representation(instance), "task_id": instance.task_id or None}


class ApprovalSerializer(serializers.Serializer[Any]):
    """A question to a person, as `agents.actions.approvals.shown` renders it."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=["capability_grant", "mcp_call"])
    status = serializers.ChoiceField(choices=["pending", "approved", "denied", "expired", "void"])
    agent = serializers.CharField()
    tool = serializers.CharField()
    arguments = serializers.CharField(help_text="JSON text, redacted.")
    summary = serializers.CharField()
    task_id = serializers.CharField(allow_null=True)
    requested_at = Moment()
    expires_at = Moment()
    decided_by = serializers.CharField(allow_null=True)
    decided_at = Moment(allow_null=True)
    note = serializers.CharField()
    grant_id = serializers.CharField(allow_null=True)


class Decision(serializers.Serializer[Any]):
    """A person's answer."""

    decision = serializers.ChoiceField(choices=["approve", "deny"])
    note = serializers.CharField(max_length=300, required=False)
