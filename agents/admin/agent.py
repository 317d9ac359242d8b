"""Agents: one form for who they are and what they may use; their state changes through actions."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest

from agents.actions import agents, fleet, policy, shapes
from agents.actions.presets import PRESETS
from agents.admin_base import WorkspaceAdmin, someone
from agents.admin_columns import named, page_column
from agents.admin_forms import ActionAdmin, FlagField, LinesField, VersionedForm
from agents.admin_pages import Question, WithReason, confirmed, each
from agents.models import Agent, Capabilities, Permissions, Role
from duduclaw.lib.visible import line
from mcp.policy import Who

WHO = ("display_name", "role", "department", "reports_to", "preset")
LISTS = Capabilities.LISTS
SWITCHES = ("db_sources", *Capabilities.SWITCHES)
LIMITS = ("grant_ttl_secs", "auto_approve_install", "computer_use_mode", "computer_use_config")
FLAGS = Permissions.FLAGS
CAPABILITIES = (*LISTS, *SWITCHES, *LIMITS)
STATE = ("status", "version", "created_at", "removed_at")
HELP = {
    "allowed_tools": "One tool, or prefix and *, a line. Empty: no restriction. Not empty: everything else is refused.",
    "denied_tools": "Beats every other list and every grant.",
    "scoped_tools": "Hidden until a person grants them for a while.",
    "approval_required_tools": "A person is asked before each call.",
    "irreversible_tools": "As above, for what cannot be undone.",
    "maybe_irreversible_tools": "Judged call by call; in doubt a person is asked.",
    "db_sources": "Data sources this agent may read, one a line. Empty: off.",
    "grant_ttl_secs": "Seconds that a grant lives when its task does not end it earlier.",
}


class AgentForm(VersionedForm):
    """An agent with its capabilities and permissions."""

    preset = forms.ChoiceField(
        choices=[("", "none"), *((name, name) for name in PRESETS)],
        required=False,
        help_text="A new preset brings its allowed tools, unless you change those as well.",
    )
    allowed_tools = LinesField(help_text=HELP["allowed_tools"])
    denied_tools = LinesField(help_text=HELP["denied_tools"])
    scoped_tools = LinesField(help_text=HELP["scoped_tools"])
    approval_required_tools = LinesField(help_text=HELP["approval_required_tools"])
    irreversible_tools = LinesField(help_text=HELP["irreversible_tools"])
    maybe_irreversible_tools = LinesField(help_text=HELP["maybe_irreversible_tools"])
    db_sources = LinesField(help_text=HELP["db_sources"])
    os_native = forms.BooleanField(required=False)
    recording = forms.BooleanField(required=False)
    system_operator = forms.BooleanField(required=False)
    codrive = forms.BooleanField(required=False)
    computer_use = forms.BooleanField(required=False)
    fork = forms.BooleanField(required=False)
    static_catalog = forms.BooleanField(required=False)
    grant_ttl_secs = forms.IntegerField(initial=3600, help_text=HELP["grant_ttl_secs"])
    auto_approve_install = forms.BooleanField(required=False)
    computer_use_mode = forms.ChoiceField(
        choices=[(mode, mode) for mode in ("container", "native")], initial="container"
    )
    computer_use_config = forms.JSONField(required=False, initial=dict)
    can_create_agents = FlagField()
    can_send_cross_agent = FlagField()
    can_schedule_tasks = FlagField()
    can_modify_own_skills = FlagField()

    class Meta:
        model = Agent
        fields = ("name", *WHO)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for owner, names in (("capabilities", CAPABILITIES), ("permissions", FLAGS)):
            row = getattr(self.instance, owner, None)
            if row is not None:
                self.initial.update({name: getattr(row, name) for name in names})
        for name in FLAGS:
            field = self.fields.get(name)
            if isinstance(field, FlagField):
                field.offer_stored(self.initial.get(name))

    def patch(self) -> dict[str, Any]:
        """The changes in the shape of REST's PATCH."""
        changed = self.changes()
        if "reports_to" in changed:
            changed["reports_to"] = changed["reports_to"].name if changed["reports_to"] else None
        patch: dict[str, Any] = {name: value for name, value in changed.items() if name in (*WHO, "name")}
        for section, names in (("capabilities", CAPABILITIES), ("permissions", FLAGS)):
            found = {name: changed[name] for name in names if name in changed}
            if found:
                patch[section] = found
        return patch


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


def read_only_fieldsets() -> list[Any]:
    """The same page for a viewer, without a form."""
    part = {"capabilities": Capabilities, "permissions": Permissions}

    def of(owner: str, names: tuple[str, ...]) -> list[Any]:
        return [named(part[owner]._meta.get_field(name), reader(owner, name)) for name in names]

    return [
        (None, {"fields": [page_column(Agent, name) for name in ("name", *WHO, *STATE)]}),
        ("Tool lists", {"fields": of("capabilities", LISTS)}),
        ("Switches and limits", {"fields": of("capabilities", (*SWITCHES, *LIMITS))}),
        ("Permissions", {"fields": of("permissions", FLAGS)}),
    ]


def reader(owner: str, name: str) -> Any:
    """Reads one column of the agent's capabilities or permissions, lists one entry a line."""

    def read(agent: Agent) -> str:
        value = getattr(getattr(agent, owner, None), name, None)
        return "\n".join(str(item) for item in value) if isinstance(value, list) else str(value)

    return read


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
