"""People for the admin's tests: one of each role in `acme`, a stranger who is admin of another workspace."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from agents.actions.approvals import WAIT
from agents.models import Approval, Membership, Role
from agents.principals import who_for_agent
from duduclaw.lib import clock
from mcp.policy import Who
from tests import build

PASSWORD = "a long enough password"
ROLES = tuple(Role.values)


def person(space: Any, username: str, role: str) -> User:
    """An account with one membership. Neither staff nor superuser: both mean nothing here."""
    user = User.objects.create_user(username, password=PASSWORD)
    Membership.objects.create(workspace=space, user=user, role=role)
    return user


def signed_in(user: User, *, stepped_up: bool = False, **options: Any) -> Client:
    """A browser of that person."""
    client = Client(**options)
    client.force_login(user)
    if stepped_up:
        step_up(client)
    return client


def step_up(client: Client, password: str = PASSWORD) -> Any:
    """Give the password again."""
    return client.post("/admin/step-up/", {"password": password, "next": "/admin/"})


@dataclass
class House:
    """`acme` with its people, `globex` with the stranger."""

    acme: build.Company
    globex: build.Company
    people: dict[str, User] = field(default_factory=dict)

    def client(self, name: str, *, stepped_up: bool = False) -> Client:
        """The browser of `viewer`, `operator`, `manager`, `admin` or `stranger`."""
        return signed_in(self.people[name], stepped_up=stepped_up)

    def who(self, name: str) -> Who:
        """An agent of acme as it may call now."""
        return who_for_agent(getattr(self.acme, name))


def house() -> House:
    """Both workspaces and everybody in them."""
    made = House(build.company("acme"), build.company("globex"))
    for role in ROLES:
        made.people[role] = person(made.acme.space, role, role)
    made.people["stranger"] = person(made.globex.space, "outsider", Role.ADMIN)
    return made


def question(agent: Any, **over: Any) -> Approval:
    """A pending request of an agent for its scoped tool."""
    now = clock.now()
    values = {
        "workspace_id": agent.workspace_id,
        "agent": agent,
        "kind": Approval.Kind.CAPABILITY_GRANT,
        "tool": "web_fetch",
        "call_tool": "capability_request",
        "arguments": '{"reason":"prices","tool":"web_fetch"}',
        "digest": "0" * 64,
        "summary": "prices of suppliers",
        "requested_by": agent.name,
        "requested_at": now,
        "expires_at": now + WAIT,
    }
    return Approval.objects.create(**{**values, **over})
