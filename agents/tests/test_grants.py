"""Grants: how long they live, what mints and ends them, and that an effect stands only while its grant does."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import connection, connections

from agents.actions import approvals
from agents.actions.grants import DEFAULT_TTL, end_for_holder, end_for_task, mint, revoke_grant
from agents.models import Capabilities, Grant, PolicyChange
from agents.principals import forget
from duduclaw.lib import clock
from mcp import registry
from mcp.calls import Answer, CallRequest, call
from mcp.errors import Refused
from mcp.models import AuditRow
from mcp.policy import Who
from tasks.actions import moves
from tasks.models import Task
from tasks.tests.board import WATCHDOG, card, race
from tests.build import Company, company, key
from tests.testtools import HOOKS, effects, leave, probe

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
TOOL = "probe_scoped"


@pytest.fixture
def people() -> Iterator[Company]:
    """The owner's probes are open by a grant only."""
    forget()
    made = company()
    Capabilities.objects.filter(agent=made.owner).update(scoped_tools=["probe_*"])
    made.owner.refresh_from_db()
    with registry.temporarily(probe(TOOL), probe("probe_slow", slow=True), probe("probe_read", read_only=True)):
        yield made
    HOOKS.clear()


def give(people: Company, tool: str = TOOL, task: Task | None = None, **over: Any) -> Grant:
    by = people.who("operator")
    return mint(people.owner, tool, task_id=task.id if task else "", source=Grant.Source.OPERATOR, by=by, **over)


def use(people: Company, tool: str = TOOL, **request: Any) -> Answer:
    return call(CallRequest(request.pop("principal", lambda: people.who("owner")), tool, **request))


# ---- minting


@pytest.mark.parametrize(
    ("stored", "seconds"), [(1, 1), (7_200, 7_200), (0, DEFAULT_TTL), (-5, DEFAULT_TTL), (2**31 - 1, 2**31 - 1)]
)
def test_a_grant_lives_as_long_as_its_agent_says(people: Company, stored: int, seconds: int) -> None:
    Capabilities.objects.filter(agent=people.owner).update(grant_ttl_secs=stored)
    people.owner.refresh_from_db()
    grant = give(people)
    assert (grant.expires_at - grant.granted_at).total_seconds() == seconds


def test_without_capabilities_it_lives_an_hour(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).delete()
    people.owner.refresh_from_db()
    assert give(people).expires_at - clock.now() <= timedelta(seconds=DEFAULT_TTL)


def test_one_grant_a_task_and_tool(people: Company) -> None:
    task, other = (card(people.space, assigned_to=people.owner) for _ in range(2))
    first = give(people, task=task)
    assert give(people, task=task) == first == give(people, f"mcp__duduclaw__{TOOL}", task)
    assert give(people, task=other) != first and give(people, "probe_read", task) != first
    end_for_task(task.id, reason="task_phase_end")
    assert give(people, task=task) != first
    assert len({give(people).id, give(people).id}) == 2


@pytest.mark.parametrize("status", Task.Status.values)
def test_only_a_running_task_can_be_given_a_grant(people: Company, status: str) -> None:
    task = card(people.space, assigned_to=people.owner, status=status)
    if status in Task.GRANTS_END:
        with pytest.raises(Refused) as caught:
            give(people, task=task)
        assert caught.value.code == "task_finished"
    else:
        assert give(people, task=task).task_id == task.id


def test_a_task_of_another_workspace_is_none(people: Company) -> None:
    with pytest.raises(Refused, match="task_finished"):
        give(people, task=card(company("other").space))


def test_a_mint_is_written_down(people: Company) -> None:
    grant = give(people)
    line = PolicyChange.objects.system().get(subject="grant")
    assert (line.ref, line.name, line.field, line.changed_by, line.before) == (
        grant.id,
        "owner",
        TOOL,
        "operator",
        None,
    )


# ---- ending


@pytest.mark.parametrize("status", Task.Status.values)
def test_grants_end_with_the_transaction_that_ends_their_task(people: Company, status: str) -> None:
    task = card(people.space, assigned_to=people.owner, status="in_progress")
    grant, kept = give(people, task=task), give(people, task=card(people.space, assigned_to=people.owner))
    unbound = give(people)
    moves.move(task, people.who("operator"), status, "task_updated", "test")
    grant.refresh_from_db()
    ends = status in ("done", "failed", "cancelled", "needs_human", "stopped")
    assert (grant.revoked_at is not None) == ends
    assert grant.revoke_reason == ("task_stopped" if status == "stopped" else "task_phase_end" if ends else "")
    for other in (kept, unbound):
        other.refresh_from_db()
        assert other.revoked_at is None
    assert end_for_task(task.id, reason="again") == (0 if ends else 1)


def test_the_invariant_after_every_end(people: Company) -> None:
    """Active grants of a finished task: none."""
    for status in Task.GRANTS_END:
        task = card(people.space, assigned_to=people.owner, status="in_progress")
        give(people, task=task)
        moves.move(task, people.who("operator"), status, "task_updated", "test")
    finished = Task.objects.system().filter(status__in=Task.GRANTS_END).values_list("id", flat=True)
    assert not Grant.objects.system().filter(task_id__in=finished).active(clock.now()).exists()


def test_a_takeover_ends_the_grants_of_the_one_who_lost(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    mine = give(people, task=task)
    theirs = mint(people.colleague, TOOL, task_id=task.id, source="operator", by=people.who("operator"))
    assert end_for_holder(task.id, None, reason="claim_lost") == 0
    assert end_for_holder(task.id, people.owner.id, reason="claim_lost") == 1
    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert (mine.revoke_reason, theirs.revoke_reason) == ("claim_lost", "")


def test_a_grant_is_taken_back_once_and_by_people(people: Company) -> None:
    grant = give(people)
    for person in ("owner", "stranger"):
        with pytest.raises(Refused, match="insufficient_role"):
            revoke_grant(grant, by=people.who(person))
    with pytest.raises(Refused, match="already_revoked"):
        revoke_grant(grant, by=company("other").who("operator"))
    assert revoke_grant(grant, by=people.who("operator")).revoke_reason == "revoked"
    with pytest.raises(Refused, match="already_revoked"):
        revoke_grant(grant, by=people.who("operator"))
    assert PolicyChange.objects.system().filter(subject="grant", ref=grant.id).count() == 2


def test_the_sweep_stamps_what_ran_out_and_nothing_hangs_on_it(people: Company) -> None:
    with time_machine.travel(clock.now(), tick=False) as time:
        grant = give(people)
        assert use(people).outcome == "ok"
        time.shift(timedelta(seconds=DEFAULT_TTL))
        assert use(people).code == "capability_grant_missing"
        assert approvals.sweep_expired() == (0, 1)
        grant.refresh_from_db()
        assert (grant.revoke_reason, grant.revoked_at) == ("ttl_expired", clock.now())
        assert approvals.sweep_expired() == (0, 0)


def test_a_tool_stays_open_while_one_of_two_grants_stands(people: Company) -> None:
    first, second = (card(people.space, assigned_to=people.owner) for _ in range(2))
    give(people, task=first)
    give(people, task=second)
    end_for_task(first.id, reason="task_phase_end")
    assert use(people).outcome == "ok"
    end_for_task(second.id, reason="task_phase_end")
    assert use(people).code == "capability_grant_missing"


def test_another_agents_grant_opens_nothing(people: Company) -> None:
    mint(people.colleague, TOOL, source="operator", by=people.who("operator"))
    assert use(people).code == "capability_grant_missing"


# ---- T18: revoked between check and effect


def rows(tool: str = TOOL) -> list[tuple[str, str]]:
    return list(AuditRow.objects.filter(stream="tool_calls", tool=tool).values_list("outcome", "reason"))


@pytest.mark.parametrize("end", ["revoked", "task ended", "time over"])
def test_T18_a_grant_that_ends_between_check_and_effect(people: Company, end: str) -> None:
    task = card(people.space, assigned_to=people.owner)
    grant = give(people, task=task)
    proofs: list[Any] = []

    def prove() -> Who:
        if proofs:
            if end == "revoked":
                revoke_grant(grant, by=people.who("operator"))
            elif end == "task ended":
                end_for_task(task.id, reason="task_phase_end")
            else:
                Grant.objects.system().update(expires_at=clock.now())
        proofs.append(people.who("owner"))
        return proofs[-1]

    answer = use(people, principal=prove)
    assert answer.error is not None
    assert (answer.error[0], answer.error[2]) == (-32003, {"error": "grant_revoked", "gate": "G9", "tool": TOOL})
    assert effects() == []
    assert rows() == [("denied", "grant_revoked")]


@pytest.mark.django_db(transaction=True)
def test_T18_a_grant_that_is_revoked_in_the_middle_of_the_effect(people: Company) -> None:
    """On PostgreSQL the revocation commits while the handler runs and undoes it; on SQLite it waits for the writer."""
    grant = give(people)
    inside, revoked = threading.Event(), threading.Event()
    postgres = connection.vendor == "postgresql"

    def effect(called: Any) -> None:
        leave(called)
        inside.set()
        assert not postgres or revoked.wait(WATCHDOG)

    def revoke() -> None:
        assert inside.wait(WATCHDOG)
        revoke_grant(grant, by=people.who("operator"))
        revoked.set()

    HOOKS[TOOL] = effect
    answer, _ = race([lambda: use(people), revoke])
    assert revoked.is_set()
    if postgres:
        assert answer.code == "grant_revoked" and effects() == []
        assert rows() == [("denied", "grant_revoked")]
    else:
        assert answer.outcome == "ok" and effects()
        assert rows() == [("ok", "")]
    assert use(people).code == "capability_grant_missing"


@pytest.mark.django_db(transaction=True)
def test_T18_the_effect_and_its_revocation_have_one_order(people: Company) -> None:
    """Whoever is first: an effect whose row says ok was committed before its grant ended."""
    for _ in range(10):
        grant, before = give(people), len(effects())
        answer, _ = race([partial(use, people), partial(revoke_grant, grant, by=people.who("operator"))])
        assert answer.code in ("", "grant_revoked", "capability_grant_missing"), answer
        assert len(effects()) - before == (answer.outcome == "ok")
        grant.refresh_from_db()
        assert grant.revoked_at is not None


@pytest.mark.django_db(transaction=True)
def test_T18_an_effect_outside_that_was_already_sent_says_so(people: Company) -> None:
    grant = give(people, "probe_slow")

    def revoke_elsewhere(called: Any) -> None:
        def revoke() -> None:
            revoke_grant(grant, by=people.who("operator"))
            connections.close_all()

        thread = threading.Thread(target=revoke)
        thread.start()
        thread.join(WATCHDOG)

    HOOKS["probe_slow"] = revoke_elsewhere
    assert use(people, "probe_slow").outcome == "ok"
    assert rows("probe_slow") == [("ok", "done_after_revoke")]


@pytest.mark.django_db(transaction=True)
def test_mints_at_once_for_one_task_make_one_grant(people: Company) -> None:
    for _ in range(8):
        task = card(people.space, assigned_to=people.owner)
        made = race([partial(give, people, task=task) for _ in range(4)])
        assert len({grant.id for grant in made}) == 1, made
        assert Grant.objects.system().filter(task_id=task.id).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_mint_and_the_end_of_its_task_at_once_leave_nothing_active(people: Company) -> None:
    for _ in range(10):
        task = card(people.space, assigned_to=people.owner, status="in_progress")

        def end(task: Task = task) -> None:
            call(CallRequest(lambda: people.who("owner"), "tasks_complete", {"task_id": task.id}))

        race([partial(give, people, task=task), end])
        assert Task.objects.system().get(pk=task.pk).status == "done"
        assert not Grant.objects.system().filter(task_id=task.id).active(clock.now()).exists()


def test_a_run_key_uses_the_grants_of_its_agent(people: Company) -> None:
    people.tokens["run"] = key(people.space, "run", agent=people.owner)[1]
    give(people)
    assert call(CallRequest(lambda: people.who("run"), TOOL)).outcome == "ok"
