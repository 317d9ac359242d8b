"""The board in the admin: read everything, move tasks by actions."""

from django.contrib import admin

from agents.admin_base import OwnRelatedFilter, WorkspaceAdmin
from tasks.models import Activity, Comment, Counter, Issue, Task, Wake


@admin.register(Task)
class TaskAdmin(WorkspaceAdmin):
    """The board's cards."""

    list_display = (
        "short",
        "title",
        "status",
        "priority",
        "assigned_to",
        "claimed_by",
        "lease_expires_at",
        "created_at",
    )
    list_filter = ("status", "priority", "kind", ("assigned_to", OwnRelatedFilter))
    search_fields = ("title", "description", "created_by", "assigned_to__name", "blocked_reason")
    list_select_related = ("assigned_to", "claimed_by")
    date_hierarchy = "created_at"

    @admin.display(description="number", ordering="number")
    def short(self, row: Task) -> str:
        """As people say it."""
        return f"T-{row.number}"


@admin.register(Activity)
class ActivityAdmin(WorkspaceAdmin):
    """The feed."""

    list_display = ("created_at", "actor", "event_type", "summary", "task")
    list_filter = ("event_type", ("agent", OwnRelatedFilter))
    search_fields = ("summary", "actor", "event_type", "task__title")
    list_select_related = ("task", "agent")
    date_hierarchy = "created_at"


@admin.register(Issue)
class IssueAdmin(WorkspaceAdmin):
    """Reports and wishes."""

    list_display = ("number", "title", "status", "priority", "assignee", "created_by", "created_at")
    list_filter = ("status", "priority", ("agent", OwnRelatedFilter))
    search_fields = ("title", "description", "assignee", "created_by")
    date_hierarchy = "created_at"


@admin.register(Comment)
class CommentAdmin(WorkspaceAdmin):
    """Comments on issues."""

    list_display = ("created_at", "author", "issue", "body")
    search_fields = ("author", "body", "issue__title")
    list_select_related = ("issue",)
    date_hierarchy = "created_at"


@admin.register(Wake)
class WakeAdmin(WorkspaceAdmin):
    """Wishes that an agent wakes."""

    list_display = ("created_at", "agent", "reason", "state", "issue", "requested_by")
    list_filter = ("state", ("agent", OwnRelatedFilter))
    search_fields = ("agent__name", "reason", "requested_by")
    list_select_related = ("agent", "issue")
    date_hierarchy = "created_at"


@admin.register(Counter)
class CounterAdmin(WorkspaceAdmin):
    """The last short number given."""

    list_display = ("kind", "n")
    search_fields = ("kind",)
