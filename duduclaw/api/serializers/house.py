"""Settings, the fleet, tools and the record."""

import json
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from agents.models import PlatformSettings
from duduclaw.api.serializers.access import ApprovalSerializer
from mcp.models import AuditRow


class SettingsSerializer(serializers.ModelSerializer[PlatformSettings]):
    """The sections of a workspace's settings; booleans that were never set are false."""

    version = serializers.IntegerField(read_only=True)

    class Meta:
        model = PlatformSettings
        fields = (*PlatformSettings.SECTIONS, "version")

    def to_representation(self, instance: PlatformSettings) -> dict[str, Any]:
        shown = {name: {**DEFAULTS.get(name, {}), **section(instance, name)} for name in PlatformSettings.SECTIONS}
        return {**shown, "version": instance.version}


DEFAULTS: Mapping[str, dict[str, Any]] = {
    "integrations": {"google_workspace": False, "github": False},
    "responsibilities": {"enabled": False},
    "delegation": {"policy": "department", "allow": []},
}


def section(row: PlatformSettings, name: str) -> dict[str, Any]:
    """A section as stored; what is no object counts as empty."""
    value = getattr(row, name)
    return value if isinstance(value, dict) else {}


class SettingsPatch(serializers.Serializer[Any]):
    """What a PATCH may hold: objects merge per key, lists are replaced whole."""

    integrations = serializers.JSONField(required=False, help_text="google_workspace, github: booleans.")
    responsibilities = serializers.JSONField(required=False, help_text="enabled: boolean.")
    delegation = serializers.JSONField(
        required=False, help_text="policy: department, hierarchy or open; allow: at most 200 pairs of agents."
    )
    container = serializers.JSONField(
        required=False, help_text="sandbox: enabled, image, when_unavailable, script_when_unavailable."
    )
    odoo = serializers.JSONField(required=False, help_text="url, db, username, and features_* as booleans.")
    memory = serializers.JSONField(required=False, help_text="working_state_handoff_max_bytes.")
    rate = serializers.JSONField(
        required=False, help_text="external and keys: read and write calls a minute, burst; 0 is off."
    )
    version = serializers.IntegerField(required=False, help_text="Refused as stale when it has moved on.")


class StopDraft(serializers.Serializer[Any]):
    """What is stopped, and why."""

    scope = serializers.CharField(help_text="all, a department or an agent; department:NAME and agent:NAME tell apart.")
    reason = serializers.CharField(max_length=500)


class ReleaseDraft(serializers.Serializer[Any]):
    """Which stop ends."""

    scope = serializers.CharField()
    reason = serializers.CharField(max_length=500, required=False)


class StopReport(serializers.Serializer[Any]):
    """How the scope stands now."""

    stopped = serializers.IntegerField(help_text="Living agents of the scope that stand still.")
    still_moving = serializers.ListField(child=serializers.CharField())
    seconds = serializers.FloatField()


class ToolDefinition(serializers.Serializer[Any]):
    """A tool as `tools/list` gives it."""

    name = serializers.CharField()
    description = serializers.CharField()
    inputSchema = serializers.JSONField()
    annotations = serializers.JSONField()
    _meta = serializers.JSONField()


class CallResult(serializers.Serializer[Any]):
    """A tool's result."""

    content = serializers.ListField(child=serializers.JSONField())
    structuredContent = serializers.JSONField()


class Parked(serializers.Serializer[Any]):
    """The call waits for a person; the same call again uses the answer."""

    status = serializers.ChoiceField(choices=["approval_pending"])
    approval = ApprovalSerializer()


class AuditSerializer(serializers.ModelSerializer[AuditRow]):
    """One row of the record; arguments are redacted."""

    id = serializers.CharField(source="uid")
    scopes_provided = serializers.ListField(child=serializers.CharField())
    arguments = serializers.JSONField()
    details = serializers.JSONField()
    ms = serializers.FloatField(allow_null=True)

    class Meta:
        model = AuditRow
        fields = (
            "id", "stream", "tool", "outcome", "reason", "agent", "key", "scopes_provided", "request_id", "transport",
            "ms", "timestamp", "arguments", "details",
        )  # fmt: skip

    def to_representation(self, instance: AuditRow) -> dict[str, Any]:
        return {
            **{name: getattr(instance, name) for name in self.Meta.fields if name != "id"},
            "id": instance.uid,
            "scopes_provided": parsed(instance.scopes_provided, []),
            "arguments": parsed(instance.arguments, {}),
            "details": parsed(instance.details, {}),
            "ms": float(instance.ms) if instance.ms else None,
        }


def parsed(text: str, empty: Any) -> Any:
    """A column of JSON text as a value; what does not parse stays text."""
    try:
        return json.loads(text) if text else empty
    except ValueError:
        return text
