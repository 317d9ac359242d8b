"""Fleet stop: a page of its own to stop, an action to release."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from agents.actions import fleet
from agents.admin_base import someone
from agents.admin_forms import ActionAdmin, ActionForm
from agents.admin_pages import Question, confirmed, each
from agents.models import FleetStop, Role
from duduclaw.lib.visible import line
from mcp.errors import Refused
from mcp.policy import Who


class StopForm(ActionForm):
    """What to stop, and why."""

    class Meta:
        model = FleetStop
        fields = ("scope", "target", "reason")
        widgets = {"reason": forms.Textarea(attrs={"rows": 3, "cols": 60})}
        help_texts = {"target": "Name of the department or agent; empty for all.", "reason": "Everybody reads it."}

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        every, target = given.get("scope") == FleetStop.Scope.ALL, given.get("target") or ""
        if every == bool(target):
            raise ValidationError({"target": "Leave it empty to stop all." if every else "Name what to stop."})
        return given


class StandingFilter(admin.SimpleListFilter):
    """Whether a stop still stands."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("standing", "standing"), ("released", "released")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() in ("standing", "released"):
            return queryset.filter(released_at__isnull=self.value() == "standing")
        return queryset


@admin.register(FleetStop)
class FleetStopAdmin(ActionAdmin):
    """Every stop with its reason, and who released it. Adding one is the stop itself."""

    form = StopForm
    add_role = Role.OPERATOR
    list_display = ("what", "reason", "stopped_by", "stopped_at", "released_by", "released_at")
    list_filter = (StandingFilter, "scope")
    search_fields = ("target", "reason", "stopped_by", "released_by")
    date_hierarchy = "stopped_at"
    actions = ("release",)

    @admin.display(description="stopped", ordering="target")
    def what(self, row: FleetStop) -> str:
        """All, or which department or agent."""
        return line(words(row))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj:
            return super().get_fieldsets(request, obj)
        says = "Every further call in this scope is refused at once, until a person releases it."
        return [(None, {"fields": ("scope", "target", "reason"), "description": says})]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given, who = form.cleaned_data, someone(request)
        made = FleetStop(scope=given["scope"], target=given["target"])
        report = fleet.stop(by=who, scope=words(made), reason=given["reason"])
        standing = FleetStop.objects.for_who(who).filter(scope=made.scope, target=made.target, released_at=None)
        obj.pk = standing.values_list("pk", flat=True)[0]
        obj.refresh_from_db()
        messages.success(request, told(report))

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:agents_fleetstop_changelist"))

    @admin.action(description="Release…", permissions=["operate"])
    def release(self, request: HttpRequest, rows: Any) -> Any:
        question = Question("Release stops", "What these stops held may call its tools again.", "Release")
        answers = confirmed(self, request, rows, question)
        if not isinstance(answers, dict):
            return answers
        who = someone(request)
        return each(request, rows, lambda stop: released(stop, who))


def words(stop: FleetStop) -> str:
    """The scope as the fleet's actions name it without doubt."""
    return stop.scope if stop.scope == FleetStop.Scope.ALL else f"{stop.scope}:{stop.target}"


def released(stop: FleetStop, who: Who) -> str:
    if stop.released_at is not None:
        raise Refused("not_stopped", "it was released already")
    fleet.release(by=who, scope=words(stop))
    return "released."


def told(report: dict[str, Any]) -> str:
    """What the stop reached."""
    moving = ", ".join(report["still_moving"])
    return (
        f"{report['stopped']} agents stand still. {f'Still moving: {moving}.' if moving else 'None is still moving.'}"
    )
