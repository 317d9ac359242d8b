"""System checks of the house: tenancy, what decides, and the name that our `mcp` shares with another package."""

from collections.abc import Sequence
from importlib import metadata
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import FieldDoesNotExist
from django.db import models

from agents.actions.presets import LARGEST, PRESETS
from agents.versions import DECIDING
from duduclaw.lib.owned import OwnedManager
from mcp import matching, registry

PACKAGES = ("agents", "tasks", "mcp", "duduclaw", "sandbox")
# Models that belong to no one workspace, and why.
WITHOUT_WORKSPACE: dict[str, str] = {
    "agents.Workspace": "is the workspace",
    "agents.Version": "numbers of triggers, found by the id of what they count",
    "mcp.AuditSeal": "one order over all rows, which name their workspace",
    "mcp.AuditBlock": "seals over that order",
}


@register
def tenancy(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Every model has a workspace, directly or through its agent, or stands on the list above."""
    found: list[CheckMessage] = []
    for model in own_models(app_configs):
        label = model._meta.label
        if label not in WITHOUT_WORKSPACE and not (has(model, "workspace") or has(model, "agent")):
            hint = (
                "Give it a foreign key `workspace`, or name it in WITHOUT_WORKSPACE of agents.checks with the reason."
            )
            found.append(Error(f"{label} belongs to no workspace.", hint=hint, obj=model, id="agents.E001"))
        if is_tenant(model) and not isinstance(model._meta.default_manager, OwnedManager):
            hint = "Use `objects = manager()` of duduclaw.lib.owned: nothing is read without saying for whom."
            found.append(Error(f"{label} can be read without a workspace.", hint=hint, obj=model, id="agents.E002"))
    return found


def own_models(app_configs: Sequence[AppConfig] | None) -> list[type[models.Model]]:
    """The models of our applications, without the tables of many-to-many relations."""
    chosen = apps.get_app_configs() if app_configs is None else app_configs
    return [model for config in chosen if config.name.split(".")[0] in PACKAGES for model in config.get_models()]


def has(model: type[models.Model], name: str) -> bool:
    """Whether the model has a column of that name."""
    try:
        model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True


def is_tenant(model: type[models.Model]) -> bool:
    """Whether rows point at their workspace (the record keeps its id as text: it outlives the workspace)."""
    return has(model, "workspace") and model._meta.get_field("workspace").is_relation


@register
def deciding(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """The map of version triggers names tables and columns that exist."""
    columns = {model._meta.db_table: {field.column for field in model._meta.fields} for model in apps.get_models()}
    found: list[CheckMessage] = []
    for table, rule in DECIDING.items():
        missing = {rule.ref, *rule.columns} - columns.get(table, set())
        if missing:
            text = f"agents.versions.DECIDING: {table} has no {', '.join(sorted(missing))}."
            found.append(Error(text, hint="A trigger on it would fail at migrate.", id="agents.E003"))
    return found


@register
def name_of_mcp(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """The client library of the same name would be imported in place of our application, or the other way round."""
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        return []
    hint = "Run `pip uninstall mcp` here; client libraries live in an environment of their own."
    return [Error(f"The distribution mcp {version} is installed beside the application mcp.", hint=hint, id="mcp.E001")]


@register
def tools(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """What the registry cannot see when a single tool registers: hints that contradict, presets that miss or swell."""
    found: list[CheckMessage] = []
    for tool in registry.every():
        if tool.read_only and tool.destructive:
            text = f"{tool.name} says that it only reads and that it destroys."
            found.append(Error(text, hint="Drop one of the two flags.", id="mcp.E002"))
        unknown = tool.redact - set(tool.schema["properties"])
        if unknown:
            text = f"{tool.name} masks {', '.join(sorted(unknown))}, which it does not take."
            found.append(Error(text, hint="A mistyped name leaves the real parameter readable.", id="mcp.E003"))
    return found + presets()


def presets() -> list[CheckMessage]:
    """Every preset names tools that exist, and few enough to read."""
    found: list[CheckMessage] = []
    names = [tool.name for tool in registry.every()]
    for preset, entries in PRESETS.items():
        missing = [entry for entry in entries if not any(matching.names(entry, name) for name in names)]
        if missing:
            text = f"Preset {preset} names {', '.join(missing)}, which no tool has."
            found.append(checks.Warning(text, hint="Correct agents.actions.presets.", id="mcp.W011"))
        shown = sum(any(matching.names(entry, name) for entry in entries) for name in names)
        if shown > LARGEST:
            text = f"Preset {preset} shows {shown} tools; {LARGEST} is the most."
            found.append(checks.Warning(text, hint="Narrow its entries.", id="mcp.W010"))
    return found
