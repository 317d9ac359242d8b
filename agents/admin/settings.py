"""The workspace's settings: switches as check boxes, delegation as a list, the other sections as JSON."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from agents.actions import policy
from agents.admin_base import WorkspaceAdmin
from agents.admin_forms import ActionAdmin, LinesField, VersionedForm
from agents.models import PlatformSettings, Role, Workspace
from mcp.policy import Who

SWITCHES = {
    "google_workspace": ("integrations", "google_workspace"),
    "github": ("integrations", "github"),
    "responsibilities_enabled": ("responsibilities", "enabled"),
}
POLICIES = (("department", "department (default)"), ("hierarchy", "hierarchy"), ("open", "open"))
JSON = ("container", "odoo", "memory", "rate")


class SettingsForm(VersionedForm):
    """One workspace's settings."""

    google_workspace = forms.BooleanField(required=False)
    github = forms.BooleanField(required=False)
    responsibilities_enabled = forms.BooleanField(required=False)
    delegation_policy = forms.ChoiceField(choices=POLICIES, required=False)
    delegation_allow = LinesField(help_text="Pairs that may work together whatever the policy: two agents a line.")
    container = forms.JSONField(required=False)
    odoo = forms.JSONField(required=False)
    memory = forms.JSONField(required=False)
    rate = forms.JSONField(required=False)

    class Meta:
        model = PlatformSettings
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (section, key) in SWITCHES.items():
            self.initial[name] = read(self.instance, section).get(key) is True
        self.initial.update({name: getattr(self.instance, name) for name in JSON})
        delegation = read(self.instance, "delegation")
        self.initial["delegation_policy"] = delegation.get("policy", "department")
        self.initial["delegation_allow"] = [" ".join(map(str, pair)) for pair in pairs(delegation)]

    def patch(self) -> dict[str, Any]:
        """The changed sections, in the shape of REST's PATCH."""
        changed = self.changes()
        patch: dict[str, Any] = {name: changed[name] or {} for name in JSON if name in changed}
        for name, (section, key) in SWITCHES.items():
            if name in changed:
                patch.setdefault(section, {})[key] = changed[name]
        if "delegation_policy" in changed:
            patch.setdefault("delegation", {})["policy"] = changed["delegation_policy"] or "department"
        if "delegation_allow" in changed:
            patch.setdefault("delegation", {})["allow"] = [entry.split() for entry in changed["delegation_allow"]]
        return patch


def read(row: Any, section: str) -> dict[str, Any]:
    """A section; what is no object counts as empty."""
    value = getattr(row, section, None)
    return value if isinstance(value, dict) else {}


def pairs(delegation: dict[str, Any]) -> list[list[Any]]:
    """The stored pairs that can be shown as lines."""
    stored = delegation.get("allow")
    return [pair for pair in stored if isinstance(pair, list)] if isinstance(stored, list) else []


@admin.register(PlatformSettings)
class PlatformSettingsAdmin(ActionAdmin):
    """One row a workspace."""

    form = SettingsForm
    change_role = Role.ADMIN
    list_display = ("workspace", "integrations", "responsibilities", "delegation", "version")
    search_fields = ("workspace__slug",)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self.has_change_permission(request, obj):
            return super().get_fieldsets(request, obj)
        return [
            ("Integrations", {"fields": tuple(SWITCHES)}),
            ("Delegation", {"fields": ("delegation_policy", "delegation_allow")}),
            ("Sections", {"fields": (*JSON, "seen_version", "opened_at"), "description": "Kept as JSON objects."}),
        ]

    def perform(self, who: Who, form: SettingsForm, row: PlatformSettings | None) -> PlatformSettings:
        """Write what changed to the version that the person saw."""
        patch = form.patch()
        if not patch or row is None:
            return row  # type: ignore[return-value]
        return policy.update_settings(by=who, changes=patch, version=form.cleaned_data["seen_version"] or 0)


@admin.register(Workspace)
class WorkspacePage(WorkspaceAdmin):
    """The workspace itself."""

    workspace_path = "pk"
    list_display = ("slug", "name", "issue_prefix", "created_at")
    search_fields = ("slug", "name")
