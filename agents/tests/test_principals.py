"""From a key to a principal: what it proves, what it no longer proves, and when a snapshot stops being good."""

import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents import principals
from agents.actions import grants, keys
from agents.models import Agent, Capabilities, Grant, Key, Membership, Permissions, PlatformSettings
from agents.principals import BadKey, who_for_agent, who_for_key, who_for_user
from duduclaw.lib import clock
from mcp import policy, scopes
from mcp.errors import InvalidArguments
from tests.build import Company, company, key, workspace
from tests.testtools import probe

pytestmark = [pytest.mark.django_db, pytest.mark.engines]


@pytest.fixture
def people() -> Company:
    principals.forget()
    return company()


def reason(token: str | None) -> str:
    """Why a key opens nothing."""
    with pytest.raises(BadKey) as caught:
        who_for_key(token)
    assert str(caught.value) == f"MCP authentication failed: {caught.value.reason}"
    return caught.value.reason


def row_of(people: Company, person: str) -> Key:
    found: Key = Key.objects.system().get(prefix=people.tokens[person][: principals.PREFIX_LENGTH])
    return found


# ---- what a key is


@pytest.mark.parametrize("token", [None, ""])
def test_no_key(people: Company, token: str | None) -> None:
    assert reason(token) == "missing"


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1],
        lambda token: token + "0",
        lambda token: token.upper(),
        lambda token: token.replace("ddc_test_", "ddc_prod_"),
        lambda token: token + "\n",
        lambda token: " " + token,
        lambda token: "ddc_refresh_test_" + "0" * 64,
        lambda token: token[:-1] + "\uff11",
    ],
)
def test_what_is_no_key_by_its_form(people: Company, change: Any) -> None:
    assert reason(change(people.tokens["owner"])) == "invalid_format"


def test_unknown_keys(people: Company) -> None:
    token = people.tokens["owner"]
    assert reason(f"ddc_test_{'0' * 32}") == "unknown"
    assert reason(token[:-1] + ("1" if token[-1] == "0" else "0")) == "unknown"


def test_T06_a_known_and_an_unknown_prefix_cost_one_comparison_each(
    people: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []
    compare = hmac.compare_digest

    def count(left: str, right: str) -> bool:
        compared.append((left, right))
        return compare(left, right)

    monkeypatch.setattr(principals.hmac, "compare_digest", count)
    token = people.tokens["owner"]
    for guess in (f"ddc_test_{'0' * 32}", token[:17] + "0" * 24):
        before = len(compared)
        with CaptureQueriesContext(connection) as queries:
            assert reason(guess) == "unknown"
        assert len(compared) - before == 1 and len(queries) == 1


def test_keys_are_stored_as_prefix_and_hash(people: Company) -> None:
    token = people.tokens["owner"]
    for row in Key.objects.system():
        assert token not in str(row.__dict__)
    assert row_of(people, "owner").digest == principals.digest_of(token)


# ---- when a key ends


def test_revoked(people: Company) -> None:
    people.who("owner")
    keys.revoke_key(row_of(people, "owner"), by=people.who("operator"))
    assert reason(people.tokens["owner"]) == "revoked"
    assert people.who("colleague").name == "colleague"


def test_expired_without_any_write(people: Company) -> None:
    with time_machine.travel(clock.now(), tick=False) as time:
        token = key(people.space, "agent", agent=people.owner, expires_at=clock.now() + timedelta(hours=1))[1]
        assert who_for_key(token).name == "owner"
        time.shift(timedelta(minutes=59, seconds=59))
        assert who_for_key(token).name == "owner"
        time.shift(timedelta(seconds=1))
        assert reason(token) == "expired"


@pytest.mark.parametrize("status", ["removed", "terminated"])
def test_the_agent_is_gone(people: Company, status: str) -> None:
    run = key(people.space, "run", agent=people.owner)[1]
    assert (people.who("owner").status, who_for_key(run).status) == ("active", "active")
    Agent.objects.filter(pk=people.owner.pk).update(status=status)
    assert reason(people.tokens["owner"]) == reason(run) == "agent_gone"


def test_a_paused_agent_keeps_its_key_and_sees_nothing(people: Company) -> None:
    Agent.objects.filter(pk=people.owner.pk).update(status="paused")
    who = people.who("owner")
    assert who.status == "paused" and policy.toolset((probe("probe_a"),), who) == ()


def test_a_key_lives_30_days_unless_it_says_otherwise_and_365_at_most(people: Company) -> None:
    with time_machine.travel("2026-12-01T12:00:00Z", tick=False):
        now = clock.now()
        assert key(people.space, "operator")[0].expires_at == now + timedelta(days=30)
        assert key(people.space, "operator", expires_at=now + timedelta(days=365))[0].expires_at == now + timedelta(365)
        for end in (now + timedelta(days=365, seconds=1), now, now - timedelta(days=1)):
            with pytest.raises(InvalidArguments) as caught:
                key(people.space, "operator", expires_at=end)
            assert caught.value.parameter == "expires_at"


# ---- what a key proves


def test_agent_and_run_keys_prove_the_agent_and_only_a_run_its_task(people: Company) -> None:
    run, token = key(people.space, "run", agent=people.owner, task_id="task-1")
    by_run, by_key = who_for_key(token), people.who("owner")
    assert (by_run.kind, by_run.name, by_run.agent, by_run.task) == ("run", "owner", people.owner.id, "task-1")
    assert (by_key.kind, by_key.name, by_key.agent, by_key.task) == ("agent", "owner", people.owner.id, "")
    assert by_run.is_agent and by_key.is_agent and not by_run.is_human
    assert (by_run.key, by_run.scopes) == (run.id, frozenset({"admin"}))


def test_an_operator_key_proves_nobodys_agent(people: Company) -> None:
    who = people.who("operator")
    assert (who.kind, who.agent, who.role, who.is_human) == ("operator", "", "admin", True)
    assert who.denied == who.allowed == who.scoped == ()


def test_a_client_is_its_own_id_and_never_an_agent(people: Company) -> None:
    token = key(people.space, "external", client_id="owner", scopes_held=["wiki:read"])[1]
    who = who_for_key(token)
    assert (who.kind, who.name, who.agent, who.role) == ("external", "owner", "", "")
    assert not who.is_agent and not who.is_human


@pytest.mark.parametrize("held", ["admin", {"admin": True}, None, [["admin"]], [1], 5])
def test_scopes_that_are_no_list_of_names_hold_nothing(people: Company, held: Any) -> None:
    row = row_of(people, "owner")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_key SET scopes = %s WHERE id = %s", [json.dumps(held), row.id])
    assert people.who("owner").scopes == frozenset()


def test_a_viewers_key_reads_and_writes_nothing_whatever_it_carries(people: Company) -> None:
    reads, writes = probe("probe_reads", read_only=True, scope="wiki:read"), probe("probe_writes", scope="wiki:write")
    for held, seen in ((["admin"], 1), (["wiki:read", "wiki:write"], 1), (["wiki:write"], 0), ([], 0)):
        token = key(people.space, "operator", role="viewer", scopes_held=held)[1]
        who = who_for_key(token)
        assert policy.toolset((reads, writes), who) == (reads,) * seen
        assert scopes.ADMIN not in who.scopes


@pytest.mark.parametrize(("role", "sees"), [("viewer", 1), ("operator", 2), ("manager", 2), ("admin", 2)])
def test_a_persons_role_is_its_scope(people: Company, role: str, sees: int) -> None:
    user = User.objects.create_user("person")
    Membership.objects.create(workspace=people.space, user=user, role=role)
    who = who_for_user(user)
    assert who is not None and (who.kind, who.role, who.workspace) == ("person", role, people.space.id)
    assert len(policy.toolset((probe("probe_reads", read_only=True), probe("probe_writes")), who)) == sees


def test_a_person_without_a_membership_or_an_account_is_nobody(people: Company) -> None:
    user = User.objects.create_user("person")
    assert who_for_user(user) is None
    Membership.objects.create(workspace=people.space, user=user, role="admin")
    assert who_for_user(user, workspace("other").id) is None
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert who_for_user(user) is None


# ---- rows that are not as they should be


def test_without_its_row_of_capabilities_an_agent_has_no_switch_and_no_limit(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).delete()
    Permissions.objects.filter(agent=people.owner).delete()
    PlatformSettings.objects.filter(workspace=people.space).delete()
    who = people.who("owner")
    assert who.switches == frozenset() and who.denied == who.allowed == who.scoped == ()
    assert who.refused_permissions == frozenset() and who.rate == (60_000, 6_000, 2_000)


@pytest.mark.parametrize("stored", ["*", {"a": 1}, 5, True])
def test_a_list_that_is_none_restricts_nothing(people: Company, stored: Any) -> None:
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=stored, allowed_tools=stored, db_sources=stored)
    who = people.who("owner")
    assert (who.denied, who.allowed, "db_sources" in who.switches) == ((), (), False)


def test_entries_that_are_no_text_are_left_out(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=[1, "memory_*", None, ["x"]])
    assert people.who("owner").denied == ("memory_*",)


@pytest.mark.parametrize(
    "section", [[], "on", {"enabled": "true"}, {"enabled": 1}, {"github": 1, "google_workspace": "x"}]
)
def test_a_switch_of_the_workspace_is_on_by_true_alone(people: Company, section: Any) -> None:
    PlatformSettings.objects.filter(workspace=people.space).update(integrations=section, responsibilities=section)
    assert people.who("owner").switches == frozenset()


# ---- snapshots


def test_an_unchanged_principal_costs_one_query(people: Company) -> None:
    who = people.who("owner")
    with CaptureQueriesContext(connection) as queries:
        assert people.who("owner") is who
    assert len(queries) == 1


def test_a_grant_opens_a_tool_until_its_time_is_over_without_any_write(people: Company) -> None:
    tool = probe("probe_scoped")
    Capabilities.objects.filter(agent=people.owner).update(scoped_tools=["probe_scoped"], grant_ttl_secs=60)
    people.owner.refresh_from_db()
    assert policy.closed(tool, people.who("owner")) is not None
    with time_machine.travel(clock.now(), tick=False) as time:
        grant = grants.mint(people.owner, "probe_scoped", source="operator", by=people.who("operator"))
        assert policy.closed(tool, people.who("owner")) is None
        assert people.who("owner").valid_until == grant.expires_at
        time.shift(timedelta(seconds=59))
        assert policy.closed(tool, people.who("owner")) is None
        time.shift(timedelta(seconds=1))
        refusal = policy.closed(tool, people.who("owner"))
        assert refusal is not None and refusal.error == "capability_grant_missing"
    assert Grant.objects.system().get().revoked_at is None


def test_the_earliest_end_bounds_a_snapshot(people: Company) -> None:
    now, by = clock.now(), people.who("operator")
    assert people.who("owner").valid_until == row_of(people, "owner").expires_at
    grants.mint(people.owner, "a", source="operator", by=by)
    Capabilities.objects.filter(agent=people.owner).update(grant_ttl_secs=60)
    people.owner.refresh_from_db()
    shortest = grants.mint(people.owner, "b", source="operator", by=by)
    assert people.who("owner").valid_until == shortest.expires_at < now + timedelta(seconds=90)
    assert who_for_agent(people.owner).valid_until == shortest.expires_at


def test_the_cache_is_bounded(people: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(principals, "CACHE_SIZE", 2)
    for person in ("owner", "colleague", "stranger", "operator", "owner"):
        assert people.who(person).name == person
    assert len(principals._cache) <= 2
