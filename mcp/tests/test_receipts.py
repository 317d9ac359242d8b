"""Receipts: what a session was told and looked at, whichever process writes."""

import pytest

from mcp import receipts
from mcp.models import Session
from mcp.receipts import Receipt
from tests.build import company

pytestmark = pytest.mark.django_db


@pytest.fixture
def row() -> Session:
    receipts.opened("s1", company().who("owner"), "ws", revision="2025-11-25", client="c" * 500, listening=True)
    return Session.objects.get(pk="s1")


def test_a_session_that_is_introduced_again_keeps_what_it_knows(row: Session) -> None:
    assert (row.principal, row.transport, len(row.client), row.listening) == ("owner", "ws", 120, True)
    receipts.listed("s1", Receipt(), "a")
    receipts.closed("s1")
    receipts.opened("s1", company("other").who("owner"), "ws", client="new")
    again = Session.objects.get(pk="s1")
    assert (again.client, again.listed_hash, again.closed_at, again.opened_at) == ("new", "a", None, row.opened_at)


def test_nothing_is_known_of_a_session_that_never_began() -> None:
    assert receipts.read("nobody") is None


def test_told_once_then_relisted(row: Session) -> None:
    assert receipts.listed("s1", Receipt(), "a") is True
    assert receipts.read("s1") == Receipt("a", "a", True, False, False)
    assert [receipts.claim_notice("s1", "a", "b") for _ in range(3)] == [True, False, False]
    told = receipts.read("s1")
    assert told == Receipt("a", "b", True, True, False)
    assert receipts.listed("s1", told, "b") is True
    row.refresh_from_db()
    assert row.relisted_at and row.notified_at and not row.stale


def test_a_list_made_before_the_change_does_not_hide_it(row: Session) -> None:
    receipts.listed("s1", Receipt(), "a")
    before = receipts.read("s1")
    assert before and receipts.claim_notice("s1", "a", "b")
    assert receipts.listed("s1", before._replace(listed="old"), "a") is False
    assert receipts.read("s1") == Receipt("a", "b", True, True, False)


def test_a_list_that_changes_nothing_writes_nothing(row: Session, django_assert_num_queries: object) -> None:
    receipts.listed("s1", Receipt(), "a")
    before = receipts.read("s1")
    assert before
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert receipts.listed("s1", before, "a") is True


def test_there_and_back_again_is_stale_until_it_looks(row: Session) -> None:
    receipts.listed("s1", Receipt(), "a")
    receipts.claim_notice("s1", "a", "b")
    receipts.claim_notice("s1", "b", "a")
    before = receipts.read("s1")
    assert before == Receipt("a", "a", True, True, False)
    assert receipts.listed("s1", before, "a") is True
    assert receipts.read("s1") == Receipt("a", "a", True, False, False)
