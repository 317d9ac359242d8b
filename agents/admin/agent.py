"""Agents: one form for who they are and what they may use; their state changes through actions."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from agents.actions import agents, fleet, policy, shapes
from agents.admin.agent_form import FLAGS, LIMITS, LISTS, STATE, SWITCHES, WHO, AgentForm, read_only_fieldsets
from agents.admin_base import someone
from agents.admin_forms import ActionAdmin
from agents.admin_pages import Question, WithReason, confirmed, each
from agents.models import Agent, Role
from duduclaw.lib.visible import line
from mcp.policy import Who


@admin.register(Agent)
class AgentAdmin(ActionAdmin):
    """Who works here, and what each may use."""

    form = AgentForm
    change_role = add_role = Role.OPERATOR
    list_display = ("name", "display_name", "department", "reports_to", "status", "preset", "created_at")
    list_filter = ("status", "department", "preset")
    search_fields = ("name", "display_name", "department", "role")
    autocomplete_fields = ("reports_to",)
    readonly_fields = ("name", *STATE)
    list_select_related = ("reports_to",)
    date_hierarchy = "created_at"
    actions = ("pause", "resume", "terminate", "stop", "release", "remove", "restore")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return read_only_fieldsets()
        who = ("name", *WHO) if obj is None else (*WHO, "seen_version", "opened_at")
        state = [] if obj is None else [("State (changed by actions)", {"fields": ("name", *STATE)})]
        return [
            (None, {"fields": who}),
            ("Tool lists", {"fields": LISTS, "description": "One entry a line, matched exactly as written."}),
            ("Switches", {"fields": SWITCHES}),
            ("Limits", {"fields": LIMITS}),
            ("Permissions", {"fields": FLAGS}),
            *state,
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return STATE if obj is None else self.readonly_fields

    def perform(self, who: Who, form: AgentForm, row: Agent | None) -> Agent:
        """Create the agent, or write what changed to the version that the person saw."""
        patch = form.patch()
        if row is None:
            return agents.create_agent(by=who, **patch)
        if not patch:
            return row
        return policy.update_agent(row, by=who, changes=patch, version=form.cleaned_data["seen_version"] or 0)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for text in shapes.warnings(obj)[:5]:
            messages.warning(request, f"{line(text, 200)}. Stored as written.")

    @admin.action(description="Pause: show an empty tool list", permissions=["operate"])
    def pause(self, request: HttpRequest, rows: Any) -> Any:
        return self.set_status(request, rows, Agent.Status.PAUSED)

    @admin.action(description="Resume: active again", permissions=["operate"])
    def resume(self, request: HttpRequest, rows: Any) -> Any:
        return self.set_status(request, rows, Agent.Status.ACTIVE)

    @admin.action(description="Terminate: close its keys for good…", permissions=["operate"])
    def terminate(self, request: HttpRequest, rows: Any) -> Any:
        says = "Their keys open nothing any more. “Resume” brings them back."
        answers = confirmed(self, request, rows, Question("Terminate agents", says, "Terminate", grave=True))
        return self.set_status(request, rows, Agent.Status.TERMINATED) if isinstance(answers, dict) else answers

    def set_status(self, request: HttpRequest, rows: Any, status: str) -> None:
        """Through the same action as REST's PATCH."""
        who = someone(request)

        def change(agent: Agent) -> str:
            policy.update_agent(agent, by=who, changes={"status": status}, version=agent.version)
            return f"is {status} now."

        each(request, rows, change)

    @admin.action(description="Stop: refuse every further call…", permissions=["operate"])
    def stop(self, request: HttpRequest, rows: Any) -> Any:
        question = Question(
            "Stop agents",
            "Every further call of these agents is refused until a person releases them. Everybody sees the reason.",
            "Stop",
            WithReason,
            grave=True,
        )
        return self.ask(request, rows, question, stop_agent)

    @admin.action(description="Release stopped agents…", permissions=["operate"])
    def release(self, request: HttpRequest, rows: Any) -> Any:
        question = Question("Release agents", "These agents may call their tools again.", "Release")
        return self.ask(request, rows, question, release_agent)

    @admin.action(description="Remove: close its keys, keep the row…", permissions=["operate"])
    def remove(self, request: HttpRequest, rows: Any) -> Any:
        says = "Their keys open nothing any more. The rows stay, and “Restore” brings them back."
        return self.ask(request, rows, Question("Remove agents", says, "Remove", grave=True), remove_agent)

    @admin.action(description="Restore removed agents…", permissions=["operate"])
    def restore(self, request: HttpRequest, rows: Any) -> Any:
        question = Question("Restore agents", "These agents work again under their old names.", "Restore")
        return self.ask(request, rows, question, restore_agent)

    def ask(self, request: HttpRequest, rows: Any, question: Question, verb: Any) -> Any:
        """Ask first; then `verb(agent, who, answers)` on each."""
        answers = confirmed(self, request, rows, question)
        if not isinstance(answers, dict):
            return answers
        who = someone(request)
        return each(request, rows, lambda agent: verb(agent, who, answers))


def stop_agent(agent: Agent, who: Who, answers: dict[str, Any]) -> str:
    fleet.stop(by=who, scope=f"agent:{agent.name}", reason=answers["reason"])
    return "is stopped."


def release_agent(agent: Agent, who: Who, answers: dict[str, Any]) -> str:
    fleet.release(by=who, scope=f"agent:{agent.name}")
    return "is released."


def remove_agent(agent: Agent, who: Who, answers: dict[str, Any]) -> str:
    agents.remove_agent(agent, by=who)
    return "is removed."


def restore_agent(agent: Agent, who: Who, answers: dict[str, Any]) -> str:
    agents.restore_agent(agent, by=who)
    return "is restored."
