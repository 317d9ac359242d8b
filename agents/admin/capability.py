"""Capabilities and permissions of all agents side by side; each is edited on its agent's page."""

from typing import Any, ClassVar

from django.contrib import admin

from agents.admin_base import WorkspaceAdmin
from agents.models import Capabilities, Permissions


class PartAdmin(WorkspaceAdmin):
    """A row that hangs on an agent; it is edited on the agent's page."""

    workspace_path = "agent__workspace_id"
    search_fields: ClassVar[Any] = ("agent__name",)
    list_select_related = ("agent",)
    ordering = ("agent__name",)


@admin.register(Capabilities)
class CapabilitiesAdmin(PartAdmin):
    """All agents' switches and lists side by side."""

    list_display = ("agent", *Capabilities.SWITCHES, "allowed_tools", "denied_tools", "scoped_tools")
    list_filter = Capabilities.SWITCHES
    search_fields = ("agent__name", "allowed_tools", "denied_tools", "scoped_tools")


@admin.register(Permissions)
class PermissionsAdmin(PartAdmin):
    """All agents' permissions side by side; empty allows."""

    list_display = ("agent", *Permissions.FLAGS)
