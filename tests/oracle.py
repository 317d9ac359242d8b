"""Who sees what, told a second time: naive, from the written rules alone, sharing no line with the kernel.

It reads bare facts about a principal and a tool and answers which gate is the first to close.
"""

import re
from dataclasses import dataclass
from typing import Protocol

SEVEN = ("memory_search", "memory_store", "memory_read", "wiki_read", "wiki_write", "wiki_search", "send_message")
GRANTABLE = (
    "memory:read", "memory:write", "wiki:read", "wiki:write", "messaging:send",
    "issues:read", "issues:write", "comments:read", "comments:write", "dashboard:read", "agents:write", "autopilot:run",
)  # fmt: skip
OF_THE_WORKSPACE = ("google_workspace", "github", "responsibilities")


class Described(Protocol):
    """What the rules say about a tool."""

    @property
    def name(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def switch(self) -> str | None: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def process_agent(self) -> bool: ...
    @property
    def human_only(self) -> bool: ...


@dataclass(frozen=True)
class Facts:
    """A principal as an operator would describe it. `stops` of `all`, `department`, `agent`; `on` are switches."""

    kind: str  # agent, run, operator, external, person
    role: str = ""  # of operator keys and people
    scopes: tuple[str, ...] = ("admin",)  # on the key
    status: str = "active"
    stops: frozenset[str] = frozenset()
    denied: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    scoped: tuple[str, ...] = ()
    granted: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    refused_flags: frozenset[str] = frozenset()
    asks_first: tuple[str, ...] = ()  # the approval lists: they hide nothing


def first_closed(tool: Described, facts: Facts) -> str | None:
    """G1 to G9, or None when the tool is visible and callable."""
    return closed_for_the_caller(tool, facts) or closed_by_policy(tool, facts)


def closed_for_the_caller(tool: Described, facts: Facts) -> str | None:
    """The gates that ask what state the caller is in and what kind of caller it is."""
    agent = facts.kind == "agent" or facts.kind == "run"
    human = facts.kind == "operator" or facts.kind == "person"
    if (agent and len(facts.stops) > 0) or (facts.kind == "external" and "all" in facts.stops):
        return "G1"
    if agent and facts.status != "active":
        return "G2"
    if facts.kind == "external" and tool.name not in SEVEN and tool.scope not in GRANTABLE:
        return "G3"
    if not scope_is_held(tool, facts):
        return "G4"
    if tool.process_agent and not agent:
        return "G5"
    return "G6" if tool.human_only and not human else None


def closed_by_policy(tool: Described, facts: Facts) -> str | None:
    """The gates that an operator opens and closes. Only agents have lists and grants."""
    agent = facts.kind == "agent" or facts.kind == "run"
    if agent and named_by(facts.denied, tool.name):
        return "G7"
    if agent and len(facts.allowed) > 0 and not named_by(facts.allowed, tool.name):
        return "G7"
    if tool.switch is not None and not switch_is_on(tool.switch, facts):
        return "G8"
    return "G9" if agent and named_by(facts.scoped, tool.name) and tool.name not in facts.granted else None


def scope_is_held(tool: Described, facts: Facts) -> bool:
    """`admin` opens everything but for clients; a viewer only reads; a person's role is its scope."""
    if facts.kind == "external":
        return tool.scope in facts.scopes
    if facts.role == "viewer" and not tool.read_only:
        return False
    if facts.kind == "person":
        return True
    return "admin" in facts.scopes or tool.scope in facts.scopes


def switch_is_on(switch: str, facts: Facts) -> bool:
    """The settings of the workspace hold for its people too, an agent's switches for that agent alone."""
    if switch in OF_THE_WORKSPACE:
        return switch in facts.on
    return facts.kind in ("agent", "run") and switch in facts.on


def named_by(entries: tuple[str, ...], name: str) -> bool:
    """Whether one of the entries means the tool."""
    for entry in entries:
        if means(entry, name):
            return True
    return False


def means(entry: str, name: str) -> bool:
    """An exact name or a prefix before one final star, on our own server; a note in brackets is dropped."""
    entry = re.sub(r"\(.*", "", entry, flags=re.DOTALL)
    if entry == "*":
        return True
    qualified = re.fullmatch(r"mcp__(.*?)__(.*)", entry, flags=re.DOTALL)
    whole_server = re.fullmatch(r"mcp__(.*)", entry, flags=re.DOTALL)
    if qualified:
        server, pattern = qualified.group(1), qualified.group(2)
    elif whole_server:
        server, pattern = whole_server.group(1), "*"
    else:
        server, pattern = "duduclaw", entry
    if server != "duduclaw" or pattern == "":
        return False
    if pattern[-1] == "*" and "*" not in pattern[:-1]:
        return name[: len(pattern) - 1] == pattern[:-1]
    return name == pattern
