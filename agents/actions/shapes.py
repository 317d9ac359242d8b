"""What may stand in an agent's capabilities and permissions and in a workspace's settings: literals of checks."""

from typing import Any

from agents.actions.fields import boolean, choice, entries, flag, line, whole
from agents.models import Agent, Capabilities, Permissions
from mcp import matching, registry

TOOL_LIST = entries(500, 200)
DAY = 86_400
COMPUTER_USE = {
    "allowed_domains": entries(500, 253),
    "allowed_apps": entries(500, 200),
    "blocked_actions": entries(500, 200),
    "max_actions": whole(0, 10_000),
    "max_session_minutes": whole(0, 24 * 60),
    "auto_confirm_trusted": boolean,
}
CAPABILITIES: dict[str, Any] = {
    **dict.fromkeys(Capabilities.LISTS, TOOL_LIST),
    **dict.fromkeys(Capabilities.SWITCHES, boolean),
    "db_sources": entries(100, 64),
    "grant_ttl_secs": whole(-(2**31), 365 * DAY),
    "auto_approve_install": boolean,
    "computer_use_mode": choice("container", "native"),
    "computer_use_config": COMPUTER_USE,
}
PERMISSIONS: dict[str, Any] = dict.fromkeys(Permissions.FLAGS, flag)
PLAIN = {
    "display_name": line(120, blank=False),
    "role": line(64),
    "department": line(64),
    "status": choice(Agent.Status.ACTIVE, Agent.Status.PAUSED, Agent.Status.TERMINATED),
}
UNAVAILABLE = choice("fail", "run_unsandboxed")
SETTINGS: dict[str, Any] = {
    "integrations": {"google_workspace": boolean, "github": boolean},
    "responsibilities": {"enabled": boolean},
    # The pairs of `allow` are judged in agents.actions.policy: they name agents.
    "delegation": {
        "policy": choice("department", "hierarchy", "open"),
        "allow": lambda where, value, stored: value,
    },
    "container": {
        "sandbox": {
            "enabled": boolean,
            "image": line(255, blank=False),
            "when_unavailable": UNAVAILABLE,
            "script_when_unavailable": UNAVAILABLE,
        }
    },
    "odoo": {
        "url": line(255),
        "db": line(64),
        "username": line(120),
        **dict.fromkeys(
            ("features_crm", "features_sale", "features_inventory", "features_accounting", "features_project",
             "features_hr"),
            boolean,
        ),
    },
    "memory": {"working_state_handoff_max_bytes": whole(1, 2**20)},
    "rate": {
        "external": dict.fromkeys(("read", "write", "burst"), whole(0, 10**9)),
        "keys": dict.fromkeys(("read", "write", "burst"), whole(0, 10**9)),
    },
}  # fmt: skip


def warnings(agent: Agent) -> list[str]:
    """What the lists of an agent name although no tool has that name. It is kept, and blocks or allows nothing."""
    tools = [tool.name for tool in registry.every()]
    lists = {name: getattr(agent.capabilities, name) for name in Capabilities.LISTS}
    return [
        f"{name}: {entry!r} names no tool"
        for name, stored in lists.items()
        for entry in (stored if isinstance(stored, list) else [])
        if isinstance(entry, str) and not any(matching.names(entry, tool) for tool in tools)
    ]
