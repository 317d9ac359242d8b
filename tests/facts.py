"""Random principals: as bare facts for the oracle, as a `Who` for the kernel, and as rows for a server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from hypothesis import strategies as st

from agents.models import (
    Agent,
    Capabilities,
    FleetStop,
    Grant,
    Key,
    Membership,
    Permissions,
    PlatformSettings,
    Role,
    Workspace,
)
from agents.principals import who_for_key, who_for_user
from duduclaw.lib import clock
from mcp import registry, scopes
from mcp.policy import Who
from mcp.registry import Tool
from tests.build import agent, key, workspace
from tests.oracle import OF_THE_WORKSPACE, Facts

AGENT_SWITCHES = sorted(registry.SWITCHES - set(OF_THE_WORKSPACE))
STOPS = ("all", "department", "agent")
ODD = (
    "mem*ory_search", "*_read", "**", "", "(x)", "Probe_read", "probe_read ", " probe_read", "mcp__", "mcp__duduclaw__",
    "mcp__github__*", "mcp__github", "mcp__duduclaw", "mcp__DuDuClaw__probe_read", "probe_read(only here)", "probe_",
    "mcp__duduclaw__probe_write", "mcp__duduclaw__probe_s*", "mcp__github__probe_write", "schedule_task",
)  # fmt: skip
PREFIXES = ("probe_*", "probe_s*", "probe_scope_*", "memory_*", "tasks_*", "working_state_*", "*", "mcp__duduclaw__*")


def entries(tools: tuple[Tool, ...], most: int) -> st.SearchStrategy[tuple[str, ...]]:
    """A tool list as people write it: mostly names, some prefixes, some that mean nothing."""
    names = st.sampled_from([tool.name for tool in tools])
    entry = st.one_of(names, names, names, st.sampled_from(PREFIXES), st.sampled_from(ODD))
    return st.lists(entry, max_size=most).map(tuple)


def rarely(common: Any, *rare: Any) -> st.SearchStrategy[Any]:
    """Mostly `common`."""
    return st.sampled_from([common] * 8 + list(rare))


def some(values: Any) -> st.SearchStrategy[frozenset[str]]:
    """Any part of them."""
    return st.frozensets(st.sampled_from(sorted(values)))


def agents(tools: tuple[Tool, ...]) -> st.SearchStrategy[Facts]:
    """Agents and runs with any policy."""
    names = some([tool.name for tool in tools])
    return st.builds(
        Facts,
        kind=st.sampled_from(["agent", "run"]),
        scopes=rarely(("admin",), (), ("memory:read", "wiki:write"), ("odoo:read", "mail:send")),
        status=rarely("active", "paused"),
        stops=rarely(frozenset(), *(frozenset({stop}) for stop in STOPS), frozenset({"department", "agent"})),
        denied=entries(tools, 4),
        allowed=st.one_of(st.just(()), entries(tools, 6)),
        scoped=entries(tools, 4),
        granted=names,
        on=some(registry.SWITCHES),
        refused_flags=some(registry.PERMISSIONS),
        asks_first=rarely((), ("probe_*",), ("probe_read", "probe_write", "mcp__duduclaw__probe_destructive")),
    )


def humans(kind: str) -> st.SearchStrategy[Facts]:
    """Operator keys or people; what an agent of the workspace may is none of theirs."""
    held = (("admin",), ("memory:read", "wiki:write"), ("issues:read", "admin"), ())
    return st.builds(
        Facts,
        kind=st.just(kind),
        role=st.sampled_from(list(Role.values)),
        scopes=st.just(("admin",)) if kind == "person" else st.sampled_from(held),
        stops=rarely(frozenset(), frozenset({"all"})),
        on=some(OF_THE_WORKSPACE),
    )


def clients() -> st.SearchStrategy[Facts]:
    """External clients with any scopes, those too that no action would give them."""
    held = st.lists(st.sampled_from(sorted(scopes.SCOPES)), unique=True, max_size=9).map(tuple)
    return st.builds(
        Facts,
        kind=st.just("external"),
        scopes=held,
        stops=rarely(frozenset(), frozenset({"all"})),
        on=some(OF_THE_WORKSPACE),
    )


def principals(tools: tuple[Tool, ...]) -> st.SearchStrategy[Facts]:
    """Every kind."""
    return st.one_of(agents(tools), agents(tools), humans("operator"), humans("person"), clients())


def who_of(facts: Facts) -> Who:
    """The facts as the kernel takes them, without a database."""
    own = facts.kind in ("agent", "run")
    switches = facts.on if own else facts.on & set(OF_THE_WORKSPACE)
    if facts.kind == "external":
        switches -= {"responsibilities"}
    held = frozenset(facts.scopes)
    if facts.role == "viewer" and "admin" in held:
        held = held - {"admin"} | {scopes.VIEWER}
    stopped = bool(facts.stops) if own else "all" in facts.stops and facts.kind == "external"
    return Who(
        kind=facts.kind,
        workspace="w",
        name="owner",
        role=facts.role,
        agent="a" if own else "",
        status=facts.status if own else "active",
        stopped="the fleet" if stopped else "",
        scopes=held,
        switches=switches,
        denied=facts.denied,
        allowed=facts.allowed,
        scoped=facts.scoped,
        grants=facts.granted,
        refused_permissions=facts.refused_flags,
        approval_required=facts.asks_first,
    )


@dataclass
class Cast:
    """One principal of each kind in one workspace; `become` gives one of them the rights that the facts describe."""

    space: Workspace
    owner: Agent
    user: User
    keys: dict[str, tuple[Key, str]] = field(default_factory=dict)

    def become(self, facts: Facts) -> Callable[[], Who]:
        """Write the facts as rows; answers how the principal is proved from now on."""
        if facts.kind == "person":
            Membership.objects.filter(user=self.user).update(role=facts.role)
        else:
            rows = Key.objects.filter(pk=self.keys[facts.kind][0].pk)
            rows.update(scopes=list(facts.scopes), role=facts.role if facts.kind == "operator" else "")
        self.settings(facts)
        self.stops(facts)
        if facts.kind in ("agent", "run"):
            self.policy(facts)
        return self.proof(facts.kind)

    def proof(self, kind: str) -> Callable[[], Who]:
        """How a principal of that kind is proved."""
        if kind != "person":
            return lambda: who_for_key(self.token(kind))

        def person() -> Who:
            who = who_for_user(self.user, self.space.id)
            assert who is not None
            return who

        return person

    def token(self, kind: str) -> str:
        """The text of the key."""
        return self.keys[kind][1]

    def settings(self, facts: Facts) -> None:
        """The workspace's switches."""
        PlatformSettings.objects.filter(workspace=self.space).update(
            integrations={name: name in facts.on for name in ("google_workspace", "github")},
            responsibilities={"enabled": "responsibilities" in facts.on},
        )

    def stops(self, facts: Facts) -> None:
        """What stands still."""
        FleetStop.objects.filter(workspace=self.space).delete()
        for scope in sorted(facts.stops):
            target = {"all": "", "department": self.owner.department, "agent": self.owner.name}[scope]
            FleetStop.objects.create(
                workspace=self.space,
                scope=scope,
                target=target,
                reason="test",
                stopped_by="operator",
                stopped_at=clock.now(),
            )

    def policy(self, facts: Facts) -> None:
        """The agent's status, lists, switches, flags and grants."""
        Agent.objects.filter(pk=self.owner.pk).update(status=facts.status)
        on = {name: name in facts.on for name in AGENT_SWITCHES if name != "db_sources"}
        Capabilities.objects.filter(agent=self.owner).update(
            denied_tools=list(facts.denied),
            allowed_tools=list(facts.allowed),
            scoped_tools=list(facts.scoped),
            approval_required_tools=list(facts.asks_first),
            db_sources=["main"] if "db_sources" in facts.on else [],
            **on,
        )
        refused = {flag: False if flag in facts.refused_flags else None for flag in registry.PERMISSIONS}
        Permissions.objects.filter(agent=self.owner).update(**refused)
        Grant.objects.filter(agent=self.owner).delete()
        Grant.objects.bulk_create(self.grant(tool) for tool in sorted(facts.granted))

    def grant(self, tool: str) -> Grant:
        """One that is active for an hour."""
        now = clock.now()
        return Grant(
            workspace=self.space,
            agent=self.owner,
            tool=tool,
            granted_by=Grant.Source.OPERATOR,
            granted_at=now,
            expires_at=now + timedelta(hours=1),
        )


def cast() -> Cast:
    """A fresh workspace with an agent, its key and run key, an operator key, a client and a person; no rate limits."""
    space = workspace("cast")
    free = {"read": 0, "write": 0, "burst": 0}
    PlatformSettings.objects.filter(workspace=space).update(rate={"external": free, "keys": free})
    owner = agent(space, "owner", department="research")
    user = User.objects.create_user("person")
    Membership.objects.create(workspace=space, user=user, role=Role.VIEWER)
    made = Cast(space, owner, user)
    made.keys = {
        "agent": key(space, "agent", agent=owner),
        "run": key(space, "run", agent=owner),
        "operator": key(space, "operator", role=Role.ADMIN, client_id="automation"),
        "external": key(space, "external", client_id="client"),
    }
    return made
