"""The agent's page: one form over its three rows, and the same page without a form for those who only read."""

from typing import Any

from django import forms

from agents.actions.presets import PRESETS
from agents.admin_columns import named, page_column
from agents.admin_forms import FlagField, LinesField, VersionedForm
from agents.models import Agent, Capabilities, Permissions

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
