"""The catalogue: a tool is a function with keyword-only annotated parameters. Knows no users. Pure.

    @tool(family="tasks", scope="admin", read_only=True)
    def tasks_list(who: Who, *, limit: Annotated[Int, Field(description="How many")] = 20) -> dict: ...

Registration raises on whatever would break a client later: a duplicate, a missing or long description,
an unknown scope, an undocumented parameter.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from mcp import scopes
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
PERMISSIONS = frozenset(
    {"can_create_agents", "can_send_cross_agent", "can_schedule_tasks", "can_modify_own_skills"}
)


class BadTool(Exception):
    """A declaration that must not start: the message names the tool and the fault."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, complete: what it is called, who may call it, what it takes, how it may be trusted."""

    name: str
    family: str
    function: Callable[..., Any]
    model: type[BaseModel]
    schema: dict[str, Any] = field(compare=False, hash=False)
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
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    slow: bool = False
    redact: frozenset[str] = frozenset()
    max_chars: int = 45_000

    @property
    def annotations(self) -> dict[str, bool]:
        """The four hints, always all of them."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


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
    """Check a declaration and freeze it."""
    if not NAME.match(name):
        raise BadTool(f"{name}: names are snake_case ASCII, at most 40 characters")
    if scope not in scopes.SCOPES:
        raise BadTool(f"{name}: unknown scope {scope!r}")
    if flags.get("switch") not in SWITCHES | {None} or flags.get("permission") not in PERMISSIONS | {None}:
        raise BadTool(f"{name}: unknown switch or permission")
    description = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    check_text(name, "", description)
    model = parameters(function, name, bool(flags.get("destructive")))
    schema = input_schema(model)
    for parameter, body in schema["properties"].items():
        check_text(name, parameter, body.get("description", ""))
    flags["redact"] = frozenset(flags.get("redact", ()))
    return Tool(
        name=name, family=family, function=function, model=model, schema=schema,
        description=description, scope=scope, **flags,
    )  # fmt: skip


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
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[parameter.name] = (hints[parameter.name], default)
    if destructive:
        fields["confirm"] = confirm_field()
    return create_model(name, __config__=ConfigDict(extra="forbid", strict=False, frozen=True), **fields)


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
