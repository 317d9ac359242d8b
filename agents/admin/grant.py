"""Grants: scoped tools that are open for a while. They are made by approvals and ended here or by their task."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agents.actions.grants import revoke_grant
from agents.admin_base import WorkspaceAdmin, someone
from agents.admin_columns import OwnRelatedFilter
from agents.admin_pages import Question, confirmed, each
from agents.models import Grant
from duduclaw.lib import clock


class ActiveFilter(admin.SimpleListFilter):
    """Open now or not."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "active"), ("ended", "ended")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        active = queryset.active(clock.now())
        if self.value() == "active":
            return active
        return queryset.exclude(pk__in=active.values("pk")) if self.value() == "ended" else queryset


@admin.register(Grant)
class GrantAdmin(WorkspaceAdmin):
    """Which tool is open for whom, until when, by whose decision."""

    list_display = ("tool", "agent", "active", "task_id", "granted_by", "approved_by", "granted_at", "expires_at")
    list_filter = (ActiveFilter, "granted_by", ("agent", OwnRelatedFilter))
    search_fields = ("tool", "agent__name", "approved_by", "task_id")
    list_select_related = ("agent",)
    date_hierarchy = "granted_at"
    actions = ("revoke",)

    @admin.display(boolean=True)
    def active(self, row: Grant) -> bool:
        """Neither revoked nor past its end."""
        return row.revoked_at is None and row.expires_at > clock.now()

    @admin.action(description="Revoke…", permissions=["operate"])
    def revoke(self, request: HttpRequest, rows: Any) -> Any:
        says = "The tools are hidden again at once, and calls that are under way are refused."
        answers = confirmed(self, request, rows, Question("Revoke grants", says, "Revoke", grave=True))
        if not isinstance(answers, dict):
            return answers
        who = someone(request)
        return each(request, rows, lambda grant: revoked(grant, who))


def revoked(grant: Grant, who: Any) -> str:
    revoke_grant(grant, by=who)
    return "revoked."
