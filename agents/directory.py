"""The directory: which agents a principal may know of, and what it may know of them."""

import re
from collections.abc import Iterable
from typing import Any

from agents.models import Agent, Capabilities, Permissions
from agents.relations import visible_agents
from duduclaw.lib import clock
from mcp.policy import Who

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z", re.ASCII)


def known(who: Who, *, archived: bool = False) -> Any:
    """Active agents by name; with `archived` also the paused and terminated ones. Removed ones never."""
    rows = visible_agents(who, archived=archived).select_related("reports_to")
    return rows if archived else rows.filter(status=Agent.Status.ACTIVE)


def find(who: Who, name: str) -> Agent | None:
    """One agent by name, archived or not; None when it is absent or not to be known of."""
    if not NAME.match(name):
        return None
    rows = known(who, archived=True).filter(name=name)
    return rows.select_related("capabilities", "permissions", "reports_to").first()


def lines(agents: Iterable[Agent], who: Who) -> list[dict[str, Any]]:
    """Agents as a list shows them; whom one reports to is named only to those who may know of that one too."""
    shown = list(agents)
    bosses = {agent.reports_to_id for agent in shown} - {None}
    named = set(known(who, archived=True).filter(pk__in=bosses).values_list("pk", flat=True)) if bosses else set()
    return [line(agent, agent.reports_to_id in named) for agent in shown]


def line(agent: Agent, boss_is_known: bool) -> dict[str, Any]:
    """One agent in short."""
    return {
        "id": agent.name,
        "display_name": agent.display_name,
        "role": agent.role,
        "department": agent.department,
        "status": agent.status,
        "reports_to": agent.reports_to.name if agent.reports_to and boss_is_known else None,
    }


def card(agent: Agent, who: Who) -> dict[str, Any]:
    """One agent with its configuration. Tool lists are for people: no agent learns a scoped tool's name here."""
    caps: Any = getattr(agent, "capabilities", None) or Capabilities()
    permissions: Any = getattr(agent, "permissions", None) or Permissions()
    shown: dict[str, Any] = {name: getattr(caps, name) is True for name in Capabilities.SWITCHES}
    if who.is_human:
        shown |= {name: getattr(caps, name) for name in (*Capabilities.LISTS, "db_sources", "grant_ttl_secs")}
    return lines([agent], who)[0] | {
        "preset": agent.preset,
        "created_at": clock.stamp(agent.created_at),
        "capabilities": shown,
        "permissions": {name: getattr(permissions, name) for name in Permissions.FLAGS},
    }
