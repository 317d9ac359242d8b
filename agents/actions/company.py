"""The first-run company: a workspace with two departments, three agents, a board, and the credentials to enter it."""

import secrets
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents.actions.agents import create_agent
from agents.actions.keys import create_key, revoke_key
from agents.actions.presets import PRESETS
from agents.actions.system import platform
from agents.models import Agent, Key, Membership, PlatformSettings, Role, Workspace
from mcp import scopes
from mcp.policy import Who
from tasks.actions.create import Draft, create_task
from tasks.models import Task

SLUG, LABEL = "company", "first run"
SCOPED_TOOL = "create_issue"  # what the walk of `demo` is refused, asks for and then calls
AGENTS: tuple[dict[str, Any], ...] = (
    {"name": "lead", "display_name": "Team lead", "department": "office", "preset": "lead"},
    {
        "name": "analyst",
        "display_name": "Analyst",
        "department": "research",
        "preset": "researcher",
        "reports_to": "lead",
    },
    {
        "name": "writer",
        "display_name": "Writer",
        "department": "office",
        "preset": "worker",
        "reports_to": "lead",
        "capabilities": {
            "allowed_tools": [*PRESETS["worker"], SCOPED_TOOL],
            "scoped_tools": [SCOPED_TOOL],
        },
    },
)
BOARD = (
    Draft("Collect last month's support questions", assigned_to="analyst", priority="high"),
    Draft("Write the answers that are asked most", assigned_to="writer", description="Needs the collected questions."),
    Draft("Check the answers with the support team", assigned_to="lead", priority="low"),
    Draft("Propose a title for the help page"),
)
EXTERNAL_SCOPES = [
    scopes.MEMORY_READ,
    scopes.MEMORY_WRITE,
    scopes.WIKI_READ,
    scopes.WIKI_WRITE,
    "issues:read",
]


@dataclass(frozen=True)
class Credentials:
    """What `first-run.json` keeps; shown nowhere else."""

    username: str
    password: str
    keys: dict[str, str]


@transaction.atomic
def ensure_company() -> Workspace:
    """The demo workspace with its agents and board; what stands already is left as it is."""
    workspace, _ = Workspace.objects.get_or_create(slug=SLUG, defaults={"name": "Company"})
    by = platform(workspace)
    PlatformSettings.objects.for_who(by).get_or_create(
        workspace=workspace, defaults={"responsibilities": {"enabled": False}}
    )
    known = Agent.objects.for_who(by).values_list("name", flat=True)
    for agent in AGENTS:
        if agent["name"] not in set(known):
            create_agent(by=by, **agent)
    if not Task.objects.for_who(by).exists():
        for draft in BOARD:
            create_task(draft, by=by)
    return workspace


@transaction.atomic
def renew_credentials(workspace: Workspace) -> Credentials:
    """A new password for `admin` and new keys; the ones that an earlier call made end."""
    by = platform(workspace)
    for key in Key.objects.for_who(by).filter(label=LABEL, revoked_at=None):
        revoke_key(key, by=by)
    password = secrets.token_urlsafe(18)
    user, _ = User.objects.get_or_create(username="admin", defaults={"is_staff": True, "is_superuser": True})
    user.set_password(password)
    user.save(update_fields=["password"])
    Membership.objects.for_who(by).get_or_create(workspace=workspace, user=user, defaults={"role": Role.ADMIN})
    return Credentials(user.get_username(), password, make_keys(by))


def make_keys(by: Who) -> dict[str, str]:
    """One key each for automation, two agents and an outside client."""
    agents = {agent.name: agent for agent in Agent.objects.for_who(by).filter(name__in=("lead", "analyst"))}
    wanted: dict[str, dict[str, Any]] = {
        "operator": {"kind": Key.Kind.OPERATOR, "client_id": "operator", "role": Role.ADMIN},
        "lead": {"kind": Key.Kind.AGENT, "agent": agents["lead"]},
        "analyst": {"kind": Key.Kind.AGENT, "agent": agents["analyst"]},
        "external": {"kind": Key.Kind.EXTERNAL, "client_id": "external", "scopes_held": EXTERNAL_SCOPES},
    }
    return {name: create_key(by=by, label=LABEL, **options)[1] for name, options in wanted.items()}
