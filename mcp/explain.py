"""Why a principal sees a tool or does not: the gates in order, who closed which and when, and what opens it.

Reads `policy.verdict` like everybody else; adds history and the mends of `mcp.mends`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, Q

from agents import principals
from agents.models import Agent, Capabilities, FleetStop, Grant, Key, PolicyChange
from duduclaw.lib import clock
from mcp import mends, policy, refusals, registry
from mcp.errors import Refused
from mcp.mends import WORKSPACE_SWITCHES, Draft
from mcp.policy import Step, Who
from mcp.registry import Tool
from mcp.render import definition

BYTES_A_TOKEN = 4
OPEN = {
    "G1": "nothing that this caller belongs to is stopped",
    "G2": "the agent is active",
    "G3": "the tool is open to this kind of caller",
    "G4": "the scope is held",
    "G5": "the caller is an agent, or the tool does not need one",
    "G6": "the tool is not for people only, or a person asks",
    "G7": "neither list excludes the tool",
    "G8": "the tool has no switch, or it is on",
    "G9": "the tool needs no grant, or has one",
}

Change = tuple[str, datetime]
UNKNOWN: tuple[None, None] = (None, None)
STOP_FIELDS = ("stopped", "released")
OWN = frozenset({"status", "denied_tools", "allowed_tools", "scoped_tools", "db_sources", *Capabilities.SWITCHES})


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is judged: an agent with scope `admin`, or the holder of one key. `dead` says why a key opens nothing."""

    agent: Agent
    key: Key | None
    who: Who
    dead: str = ""

    @property
    def acts(self) -> bool:
        """Whether the agent itself is judged, and not a client or operator without one."""
        return self.who.is_agent


def subject(agent: Agent, key: Key | None = None) -> Subject:
    """The principal to judge. A key is the agent's own, or one without an agent."""
    if key is None:
        return Subject(agent, None, principals.who_for_agent(agent))
    if key.agent_id not in (None, agent.id):
        raise Refused("not_found", "no such key")
    who = principals.for_agent_key(key, {}) if key.agent_id else principals.for_plain_key(key, {})
    return Subject(agent, key, who, dead(key))


def dead(key: Key) -> str:
    """Why a key opens nothing, or ""."""
    try:
        principals.refuse_dead(key)
    except principals.BadKey as error:
        return error.reason
    return ""


def find(name: str) -> Tool:
    """The tool of that name. Refused `not_found` for a removed or unknown one."""
    tool = registry.get(name)
    if tool is None:
        text = refusals.removed_tool(name) if name in refusals.REMOVED_TOOLS else refusals.unknown_tool(name[:64])
        raise Refused("not_found", text)
    return tool


def explain(agent: Agent, name: str, key: Key | None = None) -> dict[str, Any]:
    """`{"verdict", "gate", "trace": [{"gate", "open", "why", "changed_by", "changed_at"}], "mend": [edit]}`.

    Every edit is a REST call as it stands; applied together they open the tool, and no part of them does.
    """
    tool = find(name)
    judged = subject(agent, key)
    verdict = policy.verdict(tool, judged.who)
    stops = standing_stops(judged)
    history = History(judged, tool)
    trace = [line(step, tool, judged, stops, history) for step in verdict.trace]
    if judged.dead:
        return {
            "verdict": policy.HIDDEN,
            "gate": "key",
            "trace": [shown("key", False, f"the key is no longer good: {judged.dead}", UNKNOWN), *trace],
            "mend": [],
        }
    draft = Draft(judged.who, tuple(words(stop) for stop in stops))
    return {
        "verdict": verdict.state,
        "gate": verdict.refusal.gate if verdict.refusal else None,
        "trace": trace,
        "mend": [edit.shown() for edit in mends.mend(tool, draft, registry.every())],
    }


def line(step: Step, tool: Tool, judged: Subject, stops: list[FleetStop], history: "History") -> dict[str, Any]:
    """One gate as people read it."""
    why = step.refusal.text if step.refusal else OPEN[step.gate]
    return shown(step.gate, step.open, why, origin(step, tool, judged, stops, history))


def shown(gate: str, is_open: bool, why: str, change: Change | tuple[None, None]) -> dict[str, Any]:
    """The wire form of a trace line."""
    by, at = change
    return {"gate": gate, "open": is_open, "why": why, "changed_by": by, "changed_at": clock.stamp(at) if at else None}


def origin(
    step: Step, tool: Tool, judged: Subject, stops: list[FleetStop], history: "History"
) -> Change | tuple[None, None]:
    """Who put this gate as it stands, and when; nothing where nobody decides."""
    if step.gate == "G1" and stops:
        return stops[0].stopped_by, stops[0].stopped_at
    if step.gate == "G9" and step.open and (grant := held(judged, tool)) is not None:
        return grant.approved_by, grant.granted_at
    return history.last(*fields(step, tool))


def fields(step: Step, tool: Tool) -> tuple[str, ...]:
    """The fields that decide a gate; of two lists the one that closed it."""
    if step.gate == "G7":
        both = ("denied_tools", "allowed_tools")
        return (step.refusal.error,) if step.refusal else both
    if step.gate == "G8" and tool.switch:
        return (switch_field(tool),)
    return {"G1": STOP_FIELDS, "G2": ("status",), "G4": ("key",), "G9": ("scoped_tools",)}.get(step.gate, ())


def held(judged: Subject, tool: Tool) -> Grant | None:
    """The active grant that opens the tool, if one does."""
    if tool.name not in judged.who.grants:
        return None
    grants = Grant.objects.for_who(judged.who).filter(agent_id=judged.agent.id, tool=tool.name)
    found: Grant | None = grants.active(clock.now()).order_by("-granted_at").first()
    return found


class History:
    """When each field that decides for a subject and a tool was last changed, and by whom. One query."""

    def __init__(self, judged: Subject, tool: Tool) -> None:
        self.judged = judged
        rows = PolicyChange.objects.for_who(judged.who)
        # Ids are ordered by time, so that the largest is the newest of its group.
        groups = rows.filter(deciding(judged, tool)).values("subject", "name", "field").annotate(newest=Max("id"))
        self.newest: dict[str, Change] = {}
        for row in rows.filter(pk__in=groups.values("newest")).order_by("changed_at", "id"):
            self.newest[row.field] = (row.changed_by, row.changed_at)
        if judged.key is not None:
            self.newest["key"] = (judged.key.created_by, judged.key.created_at)

    def last(self, *fields: str) -> Change | tuple[None, None]:
        """The newest change of some fields, else the agent's creation when they are its own."""
        known = [self.newest[field] for field in fields if field in self.newest]
        if known:
            return max(known, key=lambda change: change[1])
        return self.newest.get("created", UNKNOWN) if set(fields) & OWN else UNKNOWN


def deciding(judged: Subject, tool: Tool) -> Q:
    """The lines of history about what decides for a subject and a tool."""
    switch = switch_field(tool)
    wanted = Q(subject="stop", name__in=scopes_of(judged))
    if "." in switch:
        wanted |= Q(subject="settings", ref=judged.who.workspace, field=switch)
    if judged.acts:
        wanted |= Q(subject="agent", ref=judged.agent.id, field__in={*OWN, "created"})
    return wanted


def switch_field(tool: Tool) -> str:
    """Where a tool's switch stands: a capability's name, or `section.key` of the settings; "" without one."""
    return ".".join(WORKSPACE_SWITCHES.get(tool.switch, (tool.switch,))) if tool.switch else ""


def scopes_of(judged: Subject) -> list[str]:
    """What a stop of this subject may be called, widest first."""
    if judged.who.is_human:
        return []
    if not judged.acts:
        return ["all"]
    department = [f"department:{judged.agent.department}"] if judged.agent.department else []
    return ["all", *department, f"agent:{judged.agent.name}"]


def standing_stops(judged: Subject) -> list[FleetStop]:
    """The stops that hold the subject, widest first."""
    wanted = scopes_of(judged)
    rows = FleetStop.objects.for_who(judged.who).filter(released_at=None)
    found = {words(row): row for row in rows}
    return [found[scope] for scope in wanted if scope in found]


def words(stop: FleetStop) -> str:
    """A stop's scope without doubt about its kind."""
    return str(stop.scope) if stop.scope == FleetStop.Scope.ALL else f"{stop.scope}:{stop.target}"


def toolset(agent: Agent, key: Key | None = None) -> dict[str, Any]:
    """`{"tools": [{"name", "family", "verdict", "gate", "schema_tokens"}], "visible", "schema_tokens", "certificate"}`.

    The sums count what is listed. The certificate comes with the prober; until then it is null.
    """
    judged = subject(agent, key)
    rows = [row(tool, judged) for tool in registry.every()]
    listed = [found for found in rows if found["verdict"] != policy.HIDDEN]
    return {
        "tools": rows,
        "visible": len(listed),
        "schema_tokens": sum(found["schema_tokens"] for found in listed),
        "certificate": None,
    }


def row(tool: Tool, judged: Subject) -> dict[str, Any]:
    """One tool as one principal sees it."""
    verdict = policy.verdict(tool, judged.who)
    gate = verdict.refusal.gate if verdict.refusal else None
    return {
        "name": tool.name,
        "family": tool.family,
        "verdict": policy.HIDDEN if judged.dead else verdict.state,
        "gate": "key" if judged.dead else gate,
        "schema_tokens": schema_tokens(tool),
    }


def schema_tokens(tool: Tool) -> int:
    """What listing the tool costs a model: bytes of its definition over four, rounded up. An estimate."""
    return -(-len(definition(tool).encode()) // BYTES_A_TOKEN)
