"""What the REST tests share: two workspaces, every kind of caller, and a client for each."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.core import signing
from rest_framework.test import APIClient

from agents.models import Membership, Role
from duduclaw import stepup
from duduclaw.api.tests import contract
from duduclaw.lib import clock
from tests.build import Company, company, key

PASSWORD = "a long password"


def bearer(token: str) -> APIClient:
    """A client that sends a key."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


@dataclass
class House:
    """A company with an external key, an operator key for each role, and a person for each role."""

    team: Company
    tokens: dict[str, str] = field(default_factory=dict)
    people: dict[str, User] = field(default_factory=dict)

    def key(self, name: str) -> APIClient:
        """A client with the key of `owner`, `operator`, `external`, `viewer`, ..."""
        return bearer(self.tokens[name])

    def person(self, role: str, *, csrf: bool = False, fresh: bool = True) -> APIClient:
        """A signed-in person of a role, who has given the password just now."""
        client = APIClient(enforce_csrf_checks=csrf)
        client.force_login(self.people[role])
        if fresh:
            session = client.session
            session[stepup.MARK] = signing.dumps(
                {"user": self.people[role].pk, "at": clock.now().isoformat()}, salt=stepup.SALT
            )
            session.save()
        return client

    def everybody(self) -> dict[str, APIClient]:
        """A client for every kind of caller."""
        keys = {f"key {name}": self.key(name) for name in self.tokens}
        return {**keys, **{f"person {role}": self.person(role) for role in self.people}}


def house(slug: str = "acme") -> House:
    """A furnished workspace."""
    team = company(slug)
    made = House(team, dict(team.tokens))
    for role in Role:
        made.tokens[f"{role.value} key"] = key(team.space, "operator", role=role, client_id=f"{role.value}-key")[1]
        user = User.objects.create_user(f"{slug}-{role.value}", password=PASSWORD)
        Membership.objects.create(workspace=team.space, user=user, role=role)
        made.people[role.value] = user
    scopes = ["issues:read", "issues:write"]
    made.tokens["external"] = key(team.space, "external", scopes_held=scopes, client_id="client")[1]
    made.tokens["run"] = key(team.space, "run", agent=team.owner)[1]
    return made


def send(client: APIClient, method: str, path: str, body: Any = None) -> Any:
    """One JSON request; its answer is held against the OpenAPI document."""
    verb = getattr(client, method.lower())
    answer = verb(path) if body is None else verb(path, body, format="json")
    contract.check(method, path, answer)
    return answer
