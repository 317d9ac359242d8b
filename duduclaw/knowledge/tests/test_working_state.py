"""Working state as actions: racing wakes of one agent."""

from functools import partial

import pytest

from duduclaw.knowledge.actions.handoff import Note, leave_handoff
from duduclaw.knowledge.actions.working_state import MOST_KEYS, Wanted, clear_key, set_key
from duduclaw.knowledge.models import Handoff, StateChange, StateKey
from mcp.errors import Refused
from mcp.policy import Who
from tasks.tests.board import race
from tests.build import company

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engines]
RACERS = 6


@pytest.fixture
def who() -> Who:
    return company().who("owner")


def refused(answers: list[object], code: str) -> int:
    """How many racers were refused with that code; any other exception fails the test."""
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    assert all(isinstance(error, Refused) and error.code == code for error in errors), errors
    return len(errors)


def test_one_of_many_compare_and_sets_wins(who: Who) -> None:
    set_key(Wanted("n", "start", "r"), by=who)
    for round_ in range(5):
        expected = StateKey.objects.mine(who).get().value
        answers = race(
            [
                partial(set_key, Wanted("n", f"round {round_} by {n}", "r", expected=expected), by=who)
                for n in range(RACERS)
            ]
        )
        assert refused(answers, "state_changed") == RACERS - 1
    assert StateChange.objects.mine(who).count() == 6


def test_one_of_many_creates_a_key_that_must_be_new(who: Who) -> None:
    answers = race([partial(set_key, Wanted("new", f"v{n}", "r", expected=""), by=who) for n in range(RACERS)])
    assert refused(answers, "state_changed") == RACERS - 1
    current = StateKey.objects.mine(who).get().value
    assert {error.extra["current"] for error in answers if isinstance(error, Refused)} == {current}


def test_the_last_place_is_given_once(who: Who) -> None:
    for n in range(MOST_KEYS - 1):
        set_key(Wanted(f"k{n}", "v", "r"), by=who)
    answers = race([partial(set_key, Wanted(f"late{n}", "v", "r"), by=who) for n in range(RACERS)])
    assert refused(answers, "too_many_keys") == RACERS - 1
    assert StateKey.objects.mine(who).count() == MOST_KEYS


def test_one_of_many_clears(who: Who) -> None:
    set_key(Wanted("n", "v", "r"), by=who)
    answers = race([partial(clear_key, "n", "done", by=who) for _ in range(RACERS)])
    assert sorted(answers) == [False] * (RACERS - 1) + [True]
    assert StateChange.objects.mine(who).filter(action="clear").count() == 1


def test_racing_notes_leave_one_whole_note(who: Who) -> None:
    race(
        [partial(leave_handoff, Note(f"note {n}", "complete", evidence=f"evidence {n}"), by=who) for n in range(RACERS)]
    )
    row = Handoff.objects.mine(who).get()
    assert row.note.removeprefix("note ") == row.evidence.removeprefix("evidence ")


def test_nobody_but_an_agent_has_a_state(who: Who) -> None:
    operator = company("other").who("operator")
    set_key(Wanted("n", "v", "r"), by=who)
    assert not StateKey.objects.mine(operator).exists()
