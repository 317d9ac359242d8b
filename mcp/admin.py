"""The record in the admin. Nobody adds, edits or deletes here; the database refuses it as well."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.admin_base import WorkspaceAdmin, has_role
from agents.models import Role
from mcp.models import AuditBlock, AuditRow, AuditSeal, Session
from mcp.policy import Who


@admin.register(AuditRow)
class AuditRowAdmin(WorkspaceAdmin):
    """One line a call, and the security events that name it."""

    workspace_path = "workspace"
    list_display = ("timestamp", "agent", "tool", "outcome", "reason", "transport", "ms", "stream")
    list_filter = ("outcome", "stream", "transport")
    search_fields = ("tool", "agent", "reason", "request_id", "key")


@admin.register(AuditSeal)
class AuditSealAdmin(WorkspaceAdmin):
    """The place of the workspace's rows in the sealed order."""

    list_display = ("seq", "row_uid")
    search_fields = ("row_uid",)

    def owned(self, rows: QuerySet[Any], who: Who) -> QuerySet[Any]:
        return rows.filter(row_uid__in=AuditRow.objects.filter(workspace=who.workspace).values("uid"))


@admin.register(AuditBlock)
class AuditBlockAdmin(WorkspaceAdmin):
    """Seals of the whole platform: numbers and hashes, no tenant's content. Shown to the role admin."""

    list_display = ("first", "last", "count", "tombstone", "sealed_at", "root")
    list_filter = ("tombstone",)
    search_fields = ("root", "mac")

    def owned(self, rows: QuerySet[Any], who: Who) -> QuerySet[Any]:
        return rows

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return has_role(request, Role.ADMIN)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return has_role(request, Role.ADMIN)


@admin.register(Session)
class SessionAdmin(WorkspaceAdmin):
    """Who is connected, and what each session was told of its tools."""

    workspace_path = "workspace"
    list_display = (
        "principal",
        "transport",
        "client",
        "revision",
        "opened_at",
        "notified_at",
        "relisted_at",
        "stale",
        "closed_at",
    )
    list_filter = ("stale", "transport", "revision", ("closed_at", admin.EmptyFieldListFilter))
    search_fields = ("principal", "client", "key")
    date_hierarchy = "opened_at"
