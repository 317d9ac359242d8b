"""What agents keep between wakes, for people to read."""

from django.contrib import admin

from agents.admin_base import WorkspaceAdmin
from agents.admin_columns import OwnRelatedFilter
from duduclaw.knowledge.models import Handoff, StateChange, StateKey


@admin.register(StateKey)
class StateKeyAdmin(WorkspaceAdmin):
    """Working state as it stands."""

    list_display = ("agent", "key", "value", "reason", "expires_at", "updated_at")
    list_filter = (("agent", OwnRelatedFilter),)
    search_fields = ("key", "value", "reason", "agent__name")
    list_select_related = ("agent",)
    date_hierarchy = "updated_at"


@admin.register(StateChange)
class StateChangeAdmin(WorkspaceAdmin):
    """Its history."""

    list_display = ("created_at", "agent", "action", "key", "value", "reason")
    list_filter = ("action", ("agent", OwnRelatedFilter))
    search_fields = ("key", "value", "reason", "agent__name")
    list_select_related = ("agent",)
    date_hierarchy = "created_at"


@admin.register(Handoff)
class HandoffAdmin(WorkspaceAdmin):
    """Notes to an agent's next wake."""

    list_display = ("agent", "status", "note", "blocker", "updated_at")
    list_filter = ("status",)
    search_fields = ("note", "next_steps", "evidence", "blocker", "agent__name")
    list_select_related = ("agent",)
    date_hierarchy = "updated_at"
