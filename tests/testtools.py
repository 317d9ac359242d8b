"""Tools for tests: a probe for every gate, scope, flag and switch, and a stand-in for all that the catalogue has and
we have not built yet. A probe that writes leaves one line of the feed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from duduclaw.lib import clock
from mcp import registry, scopes
from mcp.context import Call
from mcp.params import Int, Text
from mcp.registry import Tool
from tasks.models import Activity

CATALOGUE = Path(__file__).with_name("catalogue.txt")
EFFECT = "test.effect"
# What a probe of that name does instead, until the test takes it away; None goes on with the usual effect.
HOOKS: dict[str, Callable[[Call], Any]] = {}
FLAGS = {
    "reads": "read_only",
    "destroys": "destructive",
    "idempotent": "idempotent",
    "open": "open_world",
    "agent": "process_agent",
    "people": "human_only",
    "relation": "relation",
    "odoo": "odoo_feature",
}


def probe(name: str, *, scope: str = scopes.ADMIN, family: str = "probe", **flags: Any) -> Tool:
    """A tool of that name, scope and flags, with one parameter of each simple type."""

    def function(
        call: Call,
        *,
        text: Annotated[Text | None, Field(description="Any words.")] = None,
        number: Annotated[Int | None, Field(description="Any number.", ge=1, le=50)] = None,
    ) -> Any:
        """Stands in for a tool in tests."""
        other = HOOKS[name](call) if name in HOOKS else None
        if other is not None:
            return other
        if not flags.get("read_only"):
            leave(call)
        return {"tool": call.tool, "text": text, "number": number}

    return registry.build(function, name, family, scope, flags)


def leave(call: Call) -> None:
    """The effect."""
    Activity.objects.create(
        workspace_id=call.who.workspace,
        agent_id=call.who.agent or None,
        actor=call.who.name,
        event_type=EFFECT,
        summary=call.tool,
        created_at=clock.now(),
    )


def effects() -> list[str]:
    """The names of the probes whose effect stands, oldest first."""
    return list(Activity.objects.system().filter(event_type=EFFECT).order_by("id").values_list("summary", flat=True))


def scheduled(given: dict[str, Any]) -> bool:
    """What makes a permission count, for the probe that is judged by its arguments."""
    return bool(str(given.get("text") or "").strip())


def probes() -> tuple[Tool, ...]:
    """One tool for every gate and flag, and the combinations in which the order of the gates shows."""
    return (
        probe("probe_write"),
        probe("probe_read", read_only=True),
        probe("probe_idempotent", idempotent=True),
        probe("probe_destructive", destructive=True),
        probe("probe_slow_read", read_only=True, slow=True),
        probe("probe_slow_write", slow=True),
        probe("probe_open", open_world=True),
        probe("probe_relation", relation=True),
        probe("probe_odoo", odoo_feature=True, scope="odoo:read", read_only=True),
        probe("probe_agent", process_agent=True),
        probe("probe_agent_mail", process_agent=True, scope="mail:send"),
        probe("probe_agent_wiki", process_agent=True, scope="wiki:write", destructive=True),
        probe("probe_agent_switch", process_agent=True, switch="responsibilities"),
        probe("probe_people", human_only=True),
        probe("probe_people_read", human_only=True, read_only=True),
        probe("probe_people_switch", human_only=True, switch="github"),
        probe("probe_wiki_delete", scope="wiki:write", destructive=True),
        probe("probe_scope_when", scope_when=lambda given: "discovery:execute" if given.get("text") else None),
        probe("probe_flag_when", permission="can_schedule_tasks", permission_when=scheduled),
        *(probe(f"probe_switch_{name}", switch=name) for name in sorted(registry.SWITCHES)),
        *(probe(f"probe_switch_{name}_read", switch=name, read_only=True) for name in ("db_sources", "github")),
        *(probe(f"probe_flag_{flag}", permission=flag) for flag in sorted(registry.PERMISSIONS)),
        *(probe(f"probe_scope_{scope.replace(':', '_')}", scope=scope) for scope in sorted(scopes.SCOPES)),
        *(stand_in(line) for line in catalogue() if line[0] in scopes.EXTERNAL_TOOLS and absent(line[0])),
    )


def catalogue() -> list[tuple[str, ...]]:
    """(name, family, scope, switch, permission, flags) of every tool that the platform is to have; "-" is none."""
    lines = CATALOGUE.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split()) for line in lines if line and not line.startswith("#")]


def absent(name: str) -> bool:
    """Whether a stand-in is needed."""
    return registry.get(name) is None


def stand_in(line: tuple[str, ...]) -> Tool:
    """A probe with the name, scope, gate and flags of a tool of the catalogue."""
    name, family, scope, switch, permission, flags = line
    given = {FLAGS[flag]: True for flag in flags.split(",") if flag != "-"}
    return probe(
        name,
        scope=scope,
        family=family,
        switch=None if switch == "-" else switch,
        permission=None if permission == "-" else permission,
        **given,
    )


def stand_ins() -> tuple[Tool, ...]:
    """Every tool of the catalogue that is not built yet."""
    return tuple(stand_in(line) for line in catalogue() if absent(line[0]))
