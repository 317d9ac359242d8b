"""The catalogue: a tool is a function with keyword-only annotated parameters. Knows no users. Pure.

    @tool(family="tasks", scope="admin", read_only=True)
    def tasks_list(call: Call, *, limit: Annotated[Int, Field(description="How many")] = 20) -> dict: ...

Registration raises on whatever would break a client later: a duplicate, a missing or long description,
an unknown scope, an undocumented parameter.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from mcp import refusals, scopes
from mcp.schema import confirm_field, input_schema

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
DESCRIPTION_BYTES = 200
PARAM_CAP_EXEMPTIONS: dict[tuple[str, str], int] = {}
SWITCHES = frozenset(
    {
        "google_workspace",
        "github",
        "db_sources",
        "os_native",
        "recording",
        "system_operator",
        "codrive",
        "computer_use",
        "fork",
        "responsibilities",
        "static_catalog",
    }
)
PERMISSIONS = frozenset({"can_create_agents", "can_send_cross_agent", "can_schedule_tasks", "can_modify_own_skills"})


class BadTool(Exception):
    """A declaration that must not start: the message names the tool and the fault."""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool, complete: what it is called, who may call it, what it takes, how it may be trusted.

    Compared by identity: caches of views are keyed by tuples of two hundred of these.
    """

    name: str
    family: str
    function: Callable[..., Any]
    model: type[BaseModel]
    schema: dict[str, Any]
    description: str = ""
    scope: str = scopes.ADMIN
    switch: str | None = None
    permission: str | None = None
    permission_when: Callable[[dict[str, Any]], bool] | None = None
    scope_when: Callable[[dict[str, Any]], str | None] | None = None
    process_agent: bool = False
    human_only: bool = False
    relation: bool = False
    odoo_feature: bool = False
    asks_person: bool = False  # its own handler asks a person, so the approval lists do not ask twice
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    slow: bool = False
    redact: frozenset[str] = frozenset()
    max_chars: int = 45_000

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def annotations(self) -> dict[str, bool]:
        """The four hints, always all of them."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


FLAGS = frozenset(field.name for field in fields(Tool)) - {
    "name", "family", "function", "model", "schema", "description", "scope",
}  # fmt: skip
TOOLS: dict[str, Tool] = {}


def tool(*, family: str, scope: str, name: str | None = None, **flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as a tool and hand it back untouched."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = build(function, name or function.__name__, family, scope, flags)
        if made.name in TOOLS:
            raise BadTool(f"{made.name}: a tool of that name exists")
        TOOLS[made.name] = made
        return function

    return register


def build(function: Callable[..., Any], name: str, family: str, scope: str, flags: dict[str, Any]) -> Tool:
    """Check a declaration and freeze it. Raises `BadTool`."""
    check_name(name)
    check_flags(name, scope, flags)
    description = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    check_text(name, "", description)
    model = parameters(function, name, bool(flags.get("destructive")))
    schema = input_schema(model)
    for parameter, body in schema["properties"].items():
        check_text(name, parameter, body.get("description", ""))
    given = {**flags, "redact": frozenset(flags.get("redact", ()))}
    return Tool(
        name=name, family=family, function=function, model=model, schema=schema,
        description=description, scope=scope, **given,
    )  # fmt: skip


def check_name(name: str) -> None:
    """A name that every client takes, and none that once meant something else."""
    if not NAME.match(name):
        raise BadTool(f"{name}: names are snake_case ASCII, at most 40 characters")
    if name in refusals.REMOVED_TOOLS:
        raise BadTool(f"{name}: is a removed name, which answers with its replacement")


def check_flags(name: str, scope: str, flags: dict[str, Any]) -> None:
    """Every flag exists, and none contradicts another."""
    if scope not in scopes.SCOPES:
        raise BadTool(f"{name}: unknown scope {scope!r}")
    unknown = set(flags) - FLAGS
    if unknown:
        raise BadTool(f"{name}: unknown flag {min(unknown)}")
    if flags.get("switch") not in SWITCHES | {None} or flags.get("permission") not in PERMISSIONS | {None}:
        raise BadTool(f"{name}: unknown switch or permission")
    if flags.get("process_agent") and flags.get("human_only"):
        raise BadTool(f"{name}: nobody could call what is for agents only and for people only")
    if flags.get("permission_when") and not flags.get("permission"):
        raise BadTool(f"{name}: permission_when without a permission")


def check_text(tool_name: str, parameter: str, text: str) -> None:
    """A description stands there and keeps the budget (bytes of UTF-8)."""
    where = f"{tool_name}.{parameter}" if parameter else tool_name
    cap = PARAM_CAP_EXEMPTIONS.get((tool_name, parameter), DESCRIPTION_BYTES)
    if not text:
        raise BadTool(f"{where}: has no description")
    if len(text.encode()) > cap:
        raise BadTool(f"{where}: description has {len(text.encode())} bytes, {cap} is the most")


def parameters(function: Callable[..., Any], name: str, destructive: bool) -> type[BaseModel]:
    """The validator of the keyword-only parameters; extra ones are refused."""
    hints = get_type_hints(function, include_extras=True)
    first, *declared = inspect.signature(function).parameters.values()
    if first.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise BadTool(f"{name}: the first parameter is the call")
    made: dict[str, Any] = {}
    for parameter in declared:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or parameter.name not in hints:
            raise BadTool(f"{name}.{parameter.name}: parameters are keyword-only and annotated")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        made[parameter.name] = (hints[parameter.name], default)
    if destructive:
        made["confirm"] = confirm_field()
    return create_model(name, __config__=ConfigDict(extra="forbid", strict=False, frozen=True), **made)


def get(name: str) -> Tool | None:
    """The tool of that bare name, or None."""
    return TOOLS.get(name)


def every() -> tuple[Tool, ...]:
    """All tools, sorted by name: the order of every list."""
    return tuple(TOOLS[name] for name in sorted(TOOLS))


@contextmanager
def temporarily(*tools: Tool) -> Iterator[None]:
    """Register test tools for a while."""
    before = dict(TOOLS)
    for made in tools:
        if made.name in TOOLS:
            raise BadTool(f"{made.name}: a tool of that name exists")
        TOOLS[made.name] = made
    try:
        yield
    finally:
        TOOLS.clear()
        TOOLS.update(before)
