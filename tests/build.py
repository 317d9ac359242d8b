"""Builders for tests: `company()` is three related people and a stranger. Typed, no factories.

owner and colleague share a department, stranger has another, operator is an operator key of the workspace.
"""

from dataclasses import dataclass, field
from typing import Any

from agents.actions.keys import create_key
from agents.actions.system import platform
from agents.models import Agent, Capabilities, Key, Permissions, PlatformSettings, Role, Workspace
from agents.principals import who_for_agent, who_for_key
from mcp.policy import Who


def workspace(slug: str = "acme") -> Workspace:
    """A workspace with empty settings."""
    made = Workspace.objects.create(slug=slug, name=slug.title())
    PlatformSettings.objects.create(workspace=made)
    return made


def agent(space: Workspace, name: str, *, department: str = "", reports_to: Agent | None = None, **caps: Any) -> Agent:
    """An active agent; keyword arguments are capabilities."""
    made = Agent.objects.create(
        workspace=space,
        name=name,
        name_key=name,
        display_name=name.title(),
        department=department,
        reports_to=reports_to,
    )
    Capabilities.objects.create(agent=made, **caps)
    Permissions.objects.create(agent=made)
    return made


def key(space: Workspace, kind: str = "agent", **over: Any) -> tuple[Key, str]:
    """A key made by the platform: (row, text)."""
    return create_key(by=platform(space), kind=kind, **over)


@dataclass
class Company:
    """One workspace and the people of every permission test; `tokens[name]` is each one's key."""

    space: Workspace
    owner: Agent
    colleague: Agent
    stranger: Agent
    tokens: dict[str, str] = field(default_factory=dict)

    def who(self, name: str) -> Who:
        """`owner`, `colleague`, `stranger` or `operator`, as of now."""
        return who_for_key(self.tokens[name])

    def explain(self, name: str) -> Who:
        """The agent without a key."""
        return who_for_agent(getattr(self, name))


def company(slug: str = "acme") -> Company:
    """owner and colleague in research, stranger in sales, an operator key of role admin."""
    space = workspace(slug)
    made = Company(
        space,
        agent(space, "owner", department="research"),
        agent(space, "colleague", department="research"),
        agent(space, "stranger", department="sales"),
    )
    for name in ("owner", "colleague", "stranger"):
        made.tokens[name] = key(space, "agent", agent=getattr(made, name))[1]
    made.tokens["operator"] = key(space, "operator", role=Role.ADMIN, client_id="operator")[1]
    return made
