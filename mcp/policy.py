"""The kernel: which tools a principal sees, which it may call, and why not. Pure; imports no Django.

`tools/list` renders `toolset`, `tools/call` takes `verdict`, explain, mends and preview read the same
functions with another `Who`. There is no second check.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from mcp import matching, refusals, scopes
from mcp.refusals import Refusal
from mcp.registry import Tool

AGENT_KINDS = frozenset({"agent", "run"})
VIEWER = "viewer"  # the role that only reads
CALLABLE, CONDITIONAL, HIDDEN = "callable", "conditional", "hidden"


@dataclass(frozen=True, slots=True)
class Who:
    """A principal and all that decides for it, frozen at one version. Built in `agents.principals` only.

    `name` is the record actor: the agent's name, the operator's or the client's id. `valid_until` is the
    earliest end of a grant or of the key: past it the snapshot must not be used.
    """

    kind: str  # agent, run, operator, external, person
    workspace: str
    name: str
    key: str = ""  # id of the key row, "" for a person or an explained agent
    key_prefix: str = ""
    user: int | None = None
    role: str = ""  # viewer, operator, manager, admin for people and operator keys
    agent: str = ""  # id of the agent row, "" without an agent
    status: str = "active"
    department: str = ""
    task: str = ""  # the round's task of a run key
    stopped: str = ""  # what is stopped, in words; "" when nothing is
    scopes: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    denied: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    scoped: tuple[str, ...] = ()
    approval_required: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()
    maybe_irreversible: tuple[str, ...] = ()
    refused_permissions: frozenset[str] = frozenset()
    grants: frozenset[str] = frozenset()
    rate: tuple[int, int, int] = (60_000, 6_000, 2_000)  # reads and writes a minute, burst; 0 is off
    version: tuple[int, ...] = field(default=(), compare=False)
    valid_until: datetime | None = field(default=None, compare=False)

    @property
    def is_agent(self) -> bool:
        """An agent by its own or a run key (or an agent explained)."""
        return self.kind in AGENT_KINDS

    @property
    def is_human(self) -> bool:
        """A person or a person's automation: unrestricted by record relations."""
        return self.kind in {"operator", "person"}


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a verdict's trace."""

    gate: str
    open: bool
    refusal: Refusal | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`callable`, `conditional` (listed, judged per call) or `hidden` with the first closed gate's refusal."""

    state: str
    refusal: Refusal | None
    trace: tuple[Step, ...]


class Named(Protocol):
    """As much of a tool as the first two gates read."""

    @property
    def name(self) -> str: ...


def stopped(tool: Named, who: Who) -> Refusal | None:
    return refusals.stopped(tool.name, who.stopped) if who.stopped and not who.is_human else None


def active(tool: Named, who: Who) -> Refusal | None:
    return refusals.agent_not_active(tool.name, who.status) if who.is_agent and who.status != "active" else None


def external(tool: Tool, who: Who) -> Refusal | None:
    if who.kind != "external" or tool.name in scopes.EXTERNAL_TOOLS or tool.scope in scopes.GRANTABLE:
        return None
    return refusals.external_not_available(tool.name)


def scope(tool: Tool, who: Who) -> Refusal | None:
    return None if holds(who, tool.scope, tool.read_only) else refusals.insufficient_scope(tool.name, tool.scope)


def holds(who: Who, wanted: str, read_only: bool) -> bool:
    """Whether the principal holds a scope for a tool that only reads, or not.

    `admin` stands in for all, but never on an external key. A viewer reads, whatever its key carries.
    """
    if who.role == VIEWER and not read_only:
        return False
    if wanted in who.scopes:
        return True
    return who.kind != "external" and not who.scopes.isdisjoint({scopes.ADMIN, scopes.VIEWER})


def process_agent(tool: Tool, who: Who) -> Refusal | None:
    return refusals.process_agent_tool(tool.name) if tool.process_agent and not who.is_agent else None


def human_only(tool: Tool, who: Who) -> Refusal | None:
    return refusals.human_only(tool.name) if tool.human_only and not who.is_human else None


def lists(tool: Tool, who: Who) -> Refusal | None:
    entry = matching.first(who.denied, tool.name)
    if entry is not None:
        return refusals.denied_tools(tool.name, entry)
    if who.allowed and matching.first(who.allowed, tool.name) is None:
        return refusals.allowed_tools(tool.name)
    return None


def switch(tool: Tool, who: Who) -> Refusal | None:
    if tool.switch is None or tool.switch in who.switches:
        return None
    return refusals.switch_off(tool.name, tool.switch)


def grant(tool: Tool, who: Who) -> Refusal | None:
    if matching.first(who.scoped, tool.name) is None or tool.name in who.grants:
        return None
    return refusals.capability_grant_missing(tool.name)


@dataclass(frozen=True, slots=True)
class Gate:
    """A named gate; `closed` answers its refusal, or None when it is open."""

    id: str
    name: str
    closed: Callable[[Tool, Who], Refusal | None]


GATES: tuple[Gate, ...] = (
    Gate("G1", "fleet, department or agent stopped", stopped),
    Gate("G2", "agent active", active),
    Gate("G3", "available to external clients", external),
    Gate("G4", "minimum scope", scope),
    Gate("G5", "acts for the calling agent", process_agent),
    Gate("G6", "people only", human_only),
    Gate("G7", "denied and allowed lists", lists),
    Gate("G8", "switches", switch),
    Gate("G9", "active grant", grant),
)


def verdict(tool: Tool, who: Who) -> Verdict:
    """Walk the gates in order; the first closed one decides, the trace shows all of them."""
    trace = tuple(Step(gate.id, (refusal := gate.closed(tool, who)) is None, refusal) for gate in GATES)
    refusal = next((step.refusal for step in trace if step.refusal), None)
    return Verdict(HIDDEN if refusal else judged_per_call(tool, who), refusal, trace)


def judged_per_call(tool: Tool, who: Who) -> str:
    """`conditional` for the documented kinds that stay listed and may still be refused by a call."""
    per_call = tool.relation or tool.odoo_feature or (tool.permission in who.refused_permissions)
    return CONDITIONAL if per_call else CALLABLE


def closed(tool: Tool, who: Who) -> Refusal | None:
    """The first closed gate's refusal without the trace: the hot path of list and call."""
    for gate in GATES:
        refusal = gate.closed(tool, who)
        if refusal is not None:
            return refusal
    return None


def toolset(tools: Iterable[Tool], who: Who) -> tuple[Tool, ...]:
    """The tools that the principal may call now, in the order given."""
    return tuple(tool for tool in tools if closed(tool, who) is None)
