"""Approvals: questions of agents. The answer goes through the choke point, as the person who gives it."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache

from agents.actions import approvals
from agents.admin_base import WorkspaceAdmin, someone
from agents.admin_columns import OwnRelatedFilter
from agents.models import Approval
from agents.principals import who_for_user
from duduclaw import stepup
from duduclaw.lib import clock
from duduclaw.lib.visible import line, visible
from mcp import calls
from mcp.policy import Who
from tasks.models import Task

DECISIONS = {"approve": "Approve", "deny": "Deny"}
MOST = 50  # questions answered at once


class StateFilter(admin.SimpleListFilter):
    """By the status as it reads now."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "waiting"), *((value, value) for value in Approval.Status.values if value != "pending")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "open":
            return queryset.open(clock.now())
        return queryset.filter(status=self.value()) if self.value() else queryset


class NoteForm(forms.Form):
    """The answer's note."""

    note = forms.CharField(
        required=False,
        max_length=300,
        widget=forms.Textarea(attrs={"rows": 2, "cols": 60}),
        help_text="The agent reads it.",
    )


@admin.register(Approval)
class ApprovalAdmin(WorkspaceAdmin):
    """Who asks for what, until when, and what was answered."""

    hidden = ("digest",)
    list_display = ("tool", "agent", "state", "summary", "expires_at", "kind", "requested_at", "decided_by")
    list_filter = (StateFilter, "kind", ("agent", OwnRelatedFilter))
    search_fields = ("tool", "call_tool", "summary", "requested_by", "decided_by", "agent__name")
    list_select_related = ("agent",)
    date_hierarchy = "requested_at"
    actions = ("approve", "deny")
    change_form_template = "admin/agents/approval/change_form.html"

    @admin.display(description="state", ordering="status")
    def state(self, row: Approval) -> str:
        """As it reads now."""
        return str(approvals.state(row, clock.now()))

    @admin.action(description="Approve…", permissions=["operate"])
    def approve(self, request: HttpRequest, rows: Any) -> HttpResponse:
        return to_page(request, rows, "approve")

    @admin.action(description="Deny…", permissions=["operate"])
    def deny(self, request: HttpRequest, rows: Any) -> HttpResponse:
        return to_page(request, rows, "deny")

    def get_urls(self) -> list[URLPattern]:
        page = path("decide/", self.admin_site.admin_view(never_cache(self.decide)), name="agents_approval_decide")
        return [page, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page offers both answers to those who may give them."""
        may = {"may_decide": self.has_operate_permission(request)}
        return super().change_view(request, object_id, form_url, {**may, **(extra_context or {})})

    def decide(self, request: HttpRequest) -> HttpResponse:
        """Show the questions exactly as they were asked; a POST with the button answers them."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        decision = request.GET.get("decision", "")
        ids = request.GET.get("ids", "").replace("\0", "").split(",")[:MOST]
        rows = list(self.get_queryset(request).filter(pk__in=ids))
        if decision not in DECISIONS or not rows:
            messages.warning(request, "There is no such approval.")
            return HttpResponseRedirect(reverse("admin:agents_approval_changelist"))
        if not stepup.fresh(request):
            return stepup.ask(request, request.get_full_path())
        form = NoteForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            for row in rows:
                answer(request, row, decision, form.cleaned_data["note"])
            return HttpResponseRedirect(reverse("admin:agents_approval_changelist"))
        return TemplateResponse(request, "admin/agents/approval/decide.html", self.page(request, rows, decision, form))

    def page(self, request: HttpRequest, rows: list[Approval], decision: str, form: NoteForm) -> dict[str, Any]:
        """What the decision page shows."""
        return {
            **self.admin_site.each_context(request),
            "title": f"{DECISIONS[decision]} {len(rows)} request{'s' if len(rows) > 1 else ''}",
            "opts": self.opts,
            "decision": decision,
            "button": DECISIONS[decision],
            "form": form,
            "cards": [card(row, someone(request)) for row in rows],
        }


def to_page(request: HttpRequest, rows: Any, decision: str) -> HttpResponse:
    """From the list's action to the page that shows what is decided."""
    ids = ",".join(str(pk) for pk in rows.values_list("pk", flat=True)[:MOST])
    return HttpResponseRedirect(
        f"{reverse('admin:agents_approval_decide')}?{urlencode({'decision': decision, 'ids': ids})}"
    )


def card(row: Approval, who: Who) -> dict[str, Any]:
    """One question as it is shown: every text with its hidden characters visible."""
    task = Task.objects.for_who(who).filter(pk=row.task_id).first() if row.task_id else None
    return {
        "row": row,
        "state": approvals.state(row, clock.now()),
        "arguments": visible(row.arguments),
        "summary": visible(row.summary),
        "requested_by": line(row.requested_by),
        "task": task,
        "task_name": line(str(task)) if task else "",
    }


def answer(request: HttpRequest, row: Approval, decision: str, note: str) -> None:
    """One call of `tool_approve` by this person: one audit row, whatever comes of it."""
    who = someone(request)
    arguments = {"approval_id": row.pk, "decision": decision, **({"note": note} if note else {})}
    principal = partial(current, request, who)
    told = calls.call(calls.CallRequest(principal, "tool_approve", arguments, transport="admin"))
    name = line(str(row), 80)
    if told.outcome == "ok":
        messages.success(request, f"{name}: {'approved' if decision == 'approve' else 'denied'}.")
        return
    text = told.error[1] if told.error else (told.structured or {}).get("detail", told.code)
    messages.error(request, f"{name}: {line(str(text), 300)}")


def current(request: HttpRequest, who: Who) -> Who:
    """The person as of now: a membership that ended meanwhile decides nothing."""
    again = who_for_user(request.user, who.workspace)  # type: ignore[arg-type]
    if again is None:
        raise PermissionDenied
    return again
