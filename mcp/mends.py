"""Which edits open a hidden tool: found from the closed gates, then proved on a draft. Pure.

A `Draft` is a `Who` that edits change; `policy.verdict` judges it as it judges everybody. A mend is the smallest
set of edits that opens the tool: the whole set does, no proper part of it does. There is none where no policy
decides (the key's scope, an external client, people only).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from mcp import matching, policy
from mcp.policy import Who
from mcp.registry import Tool

WORKSPACE_SWITCHES = {
    "google_workspace": ("integrations", "google_workspace"),
    "github": ("integrations", "github"),
    "responsibilities": ("responsibilities", "enabled"),
}
FIRST_SOURCE = "main"  # what an empty db_sources gets
LONGEST_LIST = 500
MOST_EDITS = 12
SHOWN = 10

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A principal under edit. `stops` are the scopes that hold it still, widest first."""

    who: Who
    stops: Names = ()

    def changed(self, **fields: Any) -> "Draft":
        """The draft with other values in its `Who`."""
        return replace(self, who=replace(self.who, **fields))


@dataclass(frozen=True, slots=True)
class Edit:
    """One REST call that changes policy, what it says to people, and what it does to a draft."""

    method: str
    path: str
    body: dict[str, Any]
    says: str
    change: Callable[[Draft], Draft]

    def shown(self) -> dict[str, Any]:
        """As REST, dashboard and command show it."""
        return {"method": self.method, "path": self.path, "body": self.body, "says": self.says}


def mend(tool: Tool, draft: Draft, catalogue: Iterable[Tool]) -> tuple[Edit, ...]:
    """The smallest set of edits that opens `tool`; empty when it is open or nothing can be edited."""
    every = tuple(catalogue)
    found: list[Edit] = []
    after = draft
    while (refusal := policy.closed(tool, after.who)) is not None:
        edit = EDITS.get(refusal.gate, nothing)(tool, after, every)
        if edit is None or len(found) == MOST_EDITS:
            return ()
        found.append(edit)
        after = edit.change(after)
    return smallest(tool, draft, found)


def smallest(tool: Tool, draft: Draft, edits: list[Edit]) -> tuple[Edit, ...]:
    """The first part, by size, that opens the tool when it is applied to the draft."""
    parts = (part for size in range(len(edits) + 1) for part in combinations(edits, size))
    return next((part for part in parts if opens(tool, draft, part)), ())


def opens(tool: Tool, draft: Draft, edits: Iterable[Edit]) -> bool:
    """Whether the tool's verdict is no longer hidden after the edits."""
    for edit in edits:
        draft = edit.change(draft)
    return policy.verdict(tool, draft.who).state != policy.HIDDEN


def nothing(tool: Tool, draft: Draft, every: tuple[Tool, ...]) -> Edit | None:
    """No policy decides this gate."""
    return None


def release(tool: Tool, draft: Draft, every: tuple[Tool, ...]) -> Edit | None:
    """G1: release the widest stop that still holds."""
    if not draft.stops:
        return None
    scope = draft.stops[0]

    def change(before: Draft) -> Draft:
        left = tuple(other for other in before.stops if other != scope)
        return replace(before, stops=left).changed(stopped=left[0] if left else "")

    return Edit("POST", "/api/v1/fleet/release/", {"scope": scope}, f"release the stop of {scope}", change)


def activate(tool: Tool, draft: Draft, every: tuple[Tool, ...]) -> Edit | None:
    """G2: make the agent active."""
    return patch(
        draft, {"status": "active"}, f"make {draft.who.name} active", lambda before: before.changed(status="active")
    )


def lists(tool: Tool, draft: Draft, every: tuple[Tool, ...]) -> Edit | None:
    """G7: first off the denied list, then onto the allowed one."""
    if matching.first(draft.who.denied, tool.name) is not None:
        return drop(tool, draft, every, "denied", "denied_tools")
    if len(draft.who.allowed) >= LONGEST_LIST:
        return None
    longer = (*draft.who.allowed, tool.name)
    says = f"add {tool.name} to allowed_tools of {draft.who.name}"
    return capability(draft, "allowed_tools", list(longer), says, lambda before: before.changed(allowed=longer))


def drop(tool: Tool, draft: Draft, every: tuple[Tool, ...], field: str, column: str) -> Edit | None:
    """Replace a list by one without the entries that name the tool, and say what else that frees."""
    entries: Names = getattr(draft.who, field)
    kept = tuple(entry for entry in entries if not matching.names(entry, tool.name))
    gone = [entry for entry in entries if entry not in kept]
    freed = [
        other.name
        for other in every
        if other.name != tool.name
        and matching.first(entries, other.name) is not None
        and matching.first(kept, other.name) is None
    ]
    says = f"take {', '.join(repr(entry) for entry in gone)} off {column} of {draft.who.name}{also(freed)}"
    return capability(draft, column, list(kept), says, lambda before: before.changed(**{field: kept}))


def also(freed: list[str]) -> str:
    """What else an edit frees, in words."""
    if not freed:
        return ""
    more = f" and {len(freed) - SHOWN} more" if len(freed) > SHOWN else ""
    return f"; this frees {', '.join(freed[:SHOWN])}{more} as well"


def switch(tool: Tool, draft: Draft, every: tuple[Tool, ...]) -> Edit | None:
    """G8: turn the switch on where it stands, in the settings or with the agent."""
    name = tool.switch or ""

    def change(before: Draft) -> Draft:
        return before.changed(switches=before.who.switches | {name})

    if name in WORKSPACE_SWITCHES:
        section, key = WORKSPACE_SWITCHES[name]
        if draft.who.kind == "external" and name == "responsibilities":
            return None
        says = f"turn [{section}] {key} on for the workspace (needs the role admin)"
        return Edit("PATCH", "/api/v1/settings/", {section: {key: True}}, says, change)
    if name == "db_sources":
        says = f"give {draft.who.name} a database source; {FIRST_SOURCE!r} stands for its name"
        return capability(draft, name, [FIRST_SOURCE], says, change)
    return capability(draft, name, True, f"turn {name} on for {draft.who.name}", change)


def unscope(tool: Tool, draft: Draft, every: tuple[Tool, ...]) -> Edit | None:
    """G9: make the tool need no grant."""
    return drop(tool, draft, every, "scoped", "scoped_tools")


def capability(draft: Draft, column: str, value: Any, says: str, change: Callable[[Draft], Draft]) -> Edit | None:
    """An edit of one key of the agent's capabilities."""
    return patch(draft, {"capabilities": {column: value}}, says, change)


def patch(draft: Draft, body: dict[str, Any], says: str, change: Callable[[Draft], Draft]) -> Edit | None:
    """An edit of the agent's row; none for a principal without an agent."""
    if not draft.who.is_agent:
        return None
    return Edit("PATCH", f"/api/v1/agents/{draft.who.name}/", body, says, change)


EDITS: dict[str, Callable[[Tool, Draft, tuple[Tool, ...]], Edit | None]] = {
    "G1": release,
    "G2": activate,
    "G7": lists,
    "G8": switch,
    "G9": unscope,
}
