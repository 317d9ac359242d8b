"""The board in the admin: read everything, move tasks by actions."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agents.admin_base import WorkspaceAdmin, someone
from agents.admin_columns import OwnRelatedFilter
from agents.admin_pages import Question, WithNote, WithReason, confirmed, each
from mcp.policy import Who
from tasks.actions import finish
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
    actions = ("accept", "reject", "retry", "cancel")

    @admin.display(description="number", ordering="number")
    def short(self, row: Task) -> str:
        """As people say it."""
        return f"T-{row.number}"

    @admin.action(description="Accept: the work is good…", permissions=["operate"])
    def accept(self, request: HttpRequest, rows: Any) -> Any:
        question = Question("Accept tasks", "The tasks are done, and their grants end.", "Accept", WithNote)
        return self.ask(request, rows, question, accepted)

    @admin.action(description="Reject: send the work back…", permissions=["operate"])
    def reject(self, request: HttpRequest, rows: Any) -> Any:
        says = "The tasks go back to be revised. Whoever claims them next reads the reason."
        return self.ask(request, rows, Question("Reject tasks", says, "Reject", WithReason), rejected)

    @admin.action(description="Retry: let it go on…", permissions=["operate"])
    def retry(self, request: HttpRequest, rows: Any) -> Any:
        question = Question("Retry tasks", "The tasks wait to be claimed again.", "Retry", WithNote)
        return self.ask(request, rows, question, retried)

    @admin.action(description="Cancel: give it up…", permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: Any) -> Any:
        says = "The tasks end here, and their grants with them."
        return self.ask(request, rows, Question("Cancel tasks", says, "Cancel tasks", WithNote, grave=True), cancelled)

    def ask(self, request: HttpRequest, rows: Any, question: Question, verb: Any) -> Any:
        """Ask first; then `verb(task, who, words)` on each."""
        answers = confirmed(self, request, rows, question)
        if not isinstance(answers, dict):
            return answers
        who, words = someone(request), answers.get("reason") or answers.get("note") or ""
        return each(request, rows, lambda task: verb(task, who, words))


def accepted(task: Task, who: Who, words: str) -> str:
    finish.accept_task(task, by=who, note=words)
    return "accepted."


def rejected(task: Task, who: Who, words: str) -> str:
    finish.reject_task(task, by=who, feedback=words)
    return "sent back."


def retried(task: Task, who: Who, words: str) -> str:
    finish.retry_task(task, by=who, note=words)
    return "waits to be claimed."


def cancelled(task: Task, who: Who, words: str) -> str:
    finish.cancel_task(task, by=who, reason=words)
    return "cancelled."


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
