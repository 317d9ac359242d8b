"""The history of policy, and the numbers that caches hang on. Read-only for everybody."""

from typing import Any

from django.contrib import admin
from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast

from agents.admin_base import WorkspaceAdmin
from agents.models import Agent, Key, Membership, PolicyChange, Version
from mcp.policy import Who


@admin.register(PolicyChange)
class PolicyChangeAdmin(WorkspaceAdmin):
    """Who changed what decides for whom, when, from what to what."""

    list_display = ("changed_at", "changed_by", "subject", "name", "field", "before", "after")
    list_filter = ("subject",)
    search_fields = ("name", "field", "changed_by", "ref")
    date_hierarchy = "changed_at"


@admin.register(Version)
class VersionAdmin(WorkspaceAdmin):
    """How often what decides has changed: of this workspace, its agents, keys and people."""

    list_display = ("kind", "ref", "n")
    list_filter = ("kind",)
    search_fields = ("ref",)
    ordering = ("kind", "ref")

    def owned(self, rows: QuerySet[Any], who: Who) -> QuerySet[Any]:
        people = Membership.objects.for_who(who).annotate(ref=Cast("user_id", CharField())).values("ref")
        return rows.filter(
            Q(kind="workspace", ref=who.workspace)
            | Q(kind="agent", ref__in=Agent.objects.for_who(who).values("pk"))
            | Q(kind="key", ref__in=Key.objects.for_who(who).values("pk"))
            | Q(kind="user", ref__in=people)
        )
