"""Agents: identity, rights, what they see and why."""

from typing import Any

from rest_framework import serializers

from agents.actions import shapes
from agents.models import Agent, Capabilities, Permissions
from duduclaw.api.serializers.common import Moment, Named


class ComputerUse(serializers.Serializer[Any]):
    """`computer_use_config`; keys that were never set are absent."""

    allowed_domains = serializers.ListField(child=serializers.CharField(), required=False)
    allowed_apps = serializers.ListField(child=serializers.CharField(), required=False)
    blocked_actions = serializers.ListField(child=serializers.CharField(), required=False)
    max_actions = serializers.IntegerField(required=False)
    max_session_minutes = serializers.IntegerField(required=False)
    auto_confirm_trusted = serializers.BooleanField(required=False)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return instance if isinstance(instance, dict) else {}


def tool_list(**options: Any) -> serializers.ListField:
    """At most 500 entries of 1 to 200 characters; matched as stored."""
    return serializers.ListField(child=serializers.CharField(max_length=200), max_length=500, **options)


class CapabilitiesSerializer(serializers.ModelSerializer[Capabilities]):
    """`[capabilities]` and `[fork]`."""

    allowed_tools = tool_list(help_text="When it is not empty, everything else is denied.")
    denied_tools = tool_list(help_text="Wins over every other list and over grants.")
    scoped_tools = tool_list(help_text="Hidden without an active grant.")
    approval_required_tools = tool_list(help_text="A person is asked before each call.")
    irreversible_tools = tool_list(help_text="A person is asked before each call.")
    maybe_irreversible_tools = tool_list(help_text="Asked for when a call looks risky.")
    db_sources = serializers.ListField(child=serializers.CharField(max_length=64), max_length=100)
    grant_ttl_secs = serializers.IntegerField(help_text="Seconds that a grant lives; 0 and less mean 3,600.")
    computer_use_config = ComputerUse()
    computer_use_mode = serializers.ChoiceField(choices=["container", "native"])

    class Meta:
        model = Capabilities
        fields = tuple(shapes.CAPABILITIES)


class PermissionsSerializer(serializers.ModelSerializer[Permissions]):
    """`[permissions]`: false refuses, true and null allow."""

    can_create_agents = serializers.BooleanField(allow_null=True)
    can_send_cross_agent = serializers.BooleanField(allow_null=True)
    can_schedule_tasks = serializers.BooleanField(allow_null=True)
    can_modify_own_skills = serializers.BooleanField(allow_null=True)

    class Meta:
        model = Permissions
        fields = tuple(shapes.PERMISSIONS)

    def to_representation(self, instance: Permissions) -> dict[str, Any]:
        return {name: getattr(instance, name) for name in shapes.PERMISSIONS}


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """An agent; `id` is its name."""

    id = serializers.CharField(source="name", max_length=64, help_text="Lowercase letters, digits, hyphens.")
    reports_to = Named(allow_null=True, help_text="An agent's id, or null at the top.")
    capabilities = CapabilitiesSerializer()
    permissions = PermissionsSerializer()
    version = serializers.IntegerField(read_only=True)
    created_at = Moment(read_only=True)
    warnings = serializers.SerializerMethodField(help_text="List entries that name no tool.")

    class Meta:
        model = Agent
        fields = (
            "id", "display_name", "role", "department", "reports_to", "status", "preset", "capabilities",
            "permissions", "version", "created_at", "warnings",
        )  # fmt: skip

    def get_warnings(self, agent: Agent) -> list[str]:
        """What the lists name although no tool has that name."""
        return shapes.warnings(agent)


class AgentFields(serializers.Serializer[Any]):
    """What may be given at hiring and later."""

    display_name = serializers.CharField(max_length=120, required=False)
    role = serializers.CharField(max_length=64, required=False, allow_blank=True)
    department = serializers.CharField(max_length=64, required=False, allow_blank=True)
    reports_to = serializers.CharField(required=False, allow_null=True)
    status = serializers.ChoiceField(choices=["active", "paused", "terminated"], required=False)
    preset = serializers.CharField(
        required=False, allow_blank=True, help_text="Replaces allowed_tools by the preset's."
    )
    capabilities = CapabilitiesSerializer(partial=True, required=False)
    permissions = PermissionsSerializer(partial=True, required=False)


class AgentPatch(AgentFields):
    """What a PATCH may hold: objects merge per key, lists are replaced whole."""

    version = serializers.IntegerField(required=False, help_text="Refused as stale when it is no longer the agent's.")


class AgentDraft(AgentFields):
    """A new agent."""

    id = serializers.CharField(max_length=64)
    display_name = serializers.CharField(max_length=120)


class ToolRow(serializers.Serializer[Any]):
    """One tool as one principal sees it."""

    name = serializers.CharField()
    family = serializers.CharField()
    verdict = serializers.ChoiceField(choices=["callable", "conditional", "hidden"])
    gate = serializers.CharField(allow_null=True)
    schema_tokens = serializers.IntegerField()


class ToolSet(serializers.Serializer[Any]):
    """The whole catalogue as one principal sees it."""

    tools = ToolRow(many=True)
    visible = serializers.IntegerField()
    schema_tokens = serializers.IntegerField(help_text="Of the tools that are listed.")
    certificate = serializers.JSONField(allow_null=True)


class TraceLine(serializers.Serializer[Any]):
    """One gate."""

    gate = serializers.CharField()
    open = serializers.BooleanField()
    why = serializers.CharField()
    changed_by = serializers.CharField(allow_null=True)
    changed_at = Moment(allow_null=True)


class EditSerializer(serializers.Serializer[Any]):
    """A REST call that can be made as it stands."""

    method = serializers.CharField()
    path = serializers.CharField()
    body = serializers.JSONField()
    says = serializers.CharField()


class Explanation(serializers.Serializer[Any]):
    """Why a tool is callable or not, and the smallest set of edits that opens it."""

    verdict = serializers.ChoiceField(choices=["callable", "conditional", "hidden"])
    gate = serializers.CharField(allow_null=True)
    trace = TraceLine(many=True)
    mend = EditSerializer(many=True)
