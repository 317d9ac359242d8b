"""One row a call, with its effect or without one; nothing in it that controls, hides or gives a secret away."""

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from pydantic import Field

from agents.principals import who_for_key
from duduclaw.lib.logs import JsonFormatter
from mcp import audit, audit_reads, calls, registry
from mcp.context import Call
from mcp.errors import InvalidArguments, Refused
from mcp.models import AuditRow
from mcp.params import JsonObject, Text
from mcp.registry import Tool
from mcp.tests.record import SPACE, row
from mcp.verify import verify
from tests.audit_count import rows_of
from tests.build import Company, company
from tests.planted_secrets import CORPUS, pieces
from tests.tools import peek, send_message, sent

pytestmark = [pytest.mark.engines, pytest.mark.django_db, pytest.mark.usefixtures("anchor_home")]
HOSTILE = "a\r\nb\x1b[31m\x00c\u2028d\u202ee\U000e0041f\ud800g{}%s{0.__class__}"


def taker(name: str, fault: type[Exception] | None = None, **flags: Any) -> Tool:
    """A tool that takes anything; with a fault it raises it with the arguments in its text."""

    def function(
        call: Call,
        *,
        data: Annotated[JsonObject | None, Field(description="Anything.")] = None,
        target: Annotated[Text, Field(description="Whom.")] = "",
    ) -> dict[str, Any]:
        """Takes anything."""
        if fault is Refused:
            raise Refused("delegation_denied", "no", reason="needs_human", target=target or None)
        if fault is not None:
            raise fault(f"cannot use {data!r}")
        return {"taken": True}

    return registry.build(function, name, "tests", "admin", flags)


TAKERS = (
    taker("take"),
    taker("take_read", read_only=True),
    taker("take_human", human_only=True),
    taker("take_fault", ValueError),
    taker("take_refuse", Refused),
)


@pytest.fixture
def house() -> Iterator[Company]:
    """The company, and tools that take anything."""
    made = company()
    with registry.temporarily(*TAKERS, send_message(), peek()):
        yield made


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the processes would write."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield text
    logging.getLogger().removeHandler(handler)


def ask(house: Company, tool: str, person: str = "owner", **over: Any) -> calls.Answer:
    """One call."""
    request = calls.CallRequest(principal=partial(who_for_key, house.tokens[person]), name=tool, **over)
    return calls.call(request)


def table() -> str:
    """Every column of every row."""
    return json.dumps(list(AuditRow.objects.values()), ensure_ascii=False)


def test_every_end_of_a_call_leaves_one_row(house: Company) -> None:
    ends = [
        ("take", {}, "ok", ""),
        ("take_read", {}, "ok", ""),
        ("take", {"data": 5}, "invalid", "invalid_arguments"),
        ("no_such_tool", {}, "invalid", "unknown_tool"),
        ("schedule_task", {}, "denied", "removed_tool"),
        ("take_human", {}, "denied", "human_only"),
        ("take_refuse", {}, "denied", "needs_human"),
        ("take_fault", {}, "error", "internal"),
    ]
    for tool, arguments, outcome, reason in ends:
        with rows_of(calls=1) as told:
            answer = ask(house, tool, arguments=arguments, request_id="r1", transport="ws")
        (kept,) = told.calls
        assert (kept.tool, kept.outcome, kept.reason) == (tool, outcome, reason)
        assert (kept.agent, kept.request_id, kept.transport) == ("owner", "r1", "ws")
        assert kept.outcome == answer.outcome and json.loads(kept.scopes_provided) == ["admin"]
        assert kept.timestamp.endswith("Z") and float(kept.ms) >= 0
        assert kept.key == house.who("owner").key and kept.workspace == house.space.id


def test_the_row_and_the_effect_stand_or_fall_together(house: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    with rows_of(calls=1):
        ask(house, "send_message", arguments={"to": "analyst", "text": "one"})
    assert sent() == ["one"]
    monkeypatch.setattr(audit, "INSERT", "INSERT INTO no_such_table VALUES (%s)")
    with pytest.raises(DatabaseError), transaction.atomic():
        ask(house, "send_message", arguments={"to": "analyst", "text": "two"})
    monkeypatch.undo()
    assert sent() == ["one"], "an effect that cannot be recorded does not happen"


def test_a_call_rolled_back_leaves_no_row(house: Company) -> None:
    with rows_of(calls=0, events=0), pytest.raises(ZeroDivisionError), transaction.atomic():
        ask(house, "send_message", arguments={"to": "analyst", "text": "one"})
        audit.event(SPACE, "policy_changed")
        raise ZeroDivisionError
    assert sent() == []


def test_a_refusal_of_the_record_has_an_event_that_names_its_call(house: Company) -> None:
    with rows_of(calls=1, events=1) as told:
        ask(house, "take_refuse", arguments={"target": "stranger"}, request_id="r9", transport="http")
    (refused,), (event,) = told.calls, told.events
    assert (refused.reason, json.loads(refused.details)) == (
        "needs_human", {"error_class": "delegation_denied", "target": "stranger"},
    )  # fmt: skip
    assert (event.reason, event.agent, event.request_id, event.transport) == (
        "delegation_denied",
        "owner",
        "r9",
        "http",
    )
    assert json.loads(event.details) == {
        "severity": "warning",
        "call": refused.uid,
        "tool": "take_refuse",
        "reason": "needs_human",
        "target": "stranger",
    }  # fmt: skip


def test_a_business_refusal_has_no_event(house: Company) -> None:
    with rows_of(calls=1, events=0):
        ask(house, "take_human")


@pytest.mark.django_db(transaction=True)
def test_an_event_is_written_outside_a_transaction_and_with_one() -> None:
    audit.event(SPACE, "key_created", agent="lead", details={"label": "ci"})
    assert not connection.in_atomic_block
    with transaction.atomic():
        audit.event(SPACE, "key_revoked", severity="critical")
    first, second = AuditRow.objects.order_by("id")
    assert (first.stream, first.reason, first.agent) == ("security", "key_created", "lead")
    assert json.loads(first.details) == {"severity": "warning", "label": "ci"}
    assert json.loads(second.details) == {"severity": "critical"}


def test_an_event_that_is_not_declared_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="declare events"):
        audit.event(SPACE, "policy_chnaged")
    with pytest.raises(ValueError, match="severities"):
        audit.event(SPACE, "policy_changed", severity="dire")
    assert set(audit.EVENTS.values()) <= set(audit.SEVERITIES)


def test_columns_hold_what_the_table_has_room_for() -> None:
    sizes = {name: AuditRow._meta.get_field(name).max_length for name in audit.COLUMNS}  # type: ignore[union-attr]
    assert {name: size for name, size in sizes.items() if size} == audit.LONGEST
    long = "long words " * 60
    kept = audit.insert(replace(row(1), tool=long, agent=long, request_id=long, transport=long, reason=long))
    assert AuditRow.objects.get(uid=kept.uid).agent == long[:120] and verify().ok


def test_T44_what_controls_or_hides_text_is_escaped_in_every_column(house: Company, log: io.StringIO) -> None:
    kept = audit.insert(
        replace(row(1), tool=HOSTILE, agent=HOSTILE, request_id=HOSTILE, details=json.dumps({"t": HOSTILE}))
    )
    audit.event(SPACE, "policy_changed", agent=HOSTILE, details={HOSTILE: HOSTILE})
    ask(house, "take_fault", arguments={"data": {"text": HOSTILE.replace("\ud800", "")}}, request_id=HOSTILE)
    logging.getLogger("mcp").warning("seen: %s", HOSTILE)
    for found in AuditRow.objects.all():
        for column in audit.COLUMNS:
            assert getattr(found, column).isprintable(), (column, getattr(found, column))
    assert AuditRow.objects.get(uid=kept.uid).tool.startswith(
        r"a\r\nb\u001b[31m\u0000c\u2028d\u202ee\udb40\udc41f\ud800g{}%s{"
    )
    assert json.loads(AuditRow.objects.get(uid=kept.uid).details) == {"t": HOSTILE}
    assert all(line.isprintable() and json.loads(line) for line in log.getvalue().splitlines())
    assert len(log.getvalue().split("\n")) == 3 and verify().ok


def four_ways(house: Company, arguments: dict[str, Any]) -> list[calls.Answer]:
    """Success, schema error, gate refusal, and an exception that echoes its argument."""
    wrapped = {"data": arguments}
    return [
        ask(house, "take", arguments=wrapped),
        ask(house, "take", arguments=arguments),
        ask(house, "take_human", arguments=wrapped),
        ask(house, "take_fault", arguments=wrapped),
    ]


def test_T51_two_hundred_secrets_are_nowhere(house: Company, log: io.StringIO, tmp_path: Path) -> None:
    with rows_of(calls=4 * len(CORPUS)):
        for _, _, arguments in CORPUS:
            outcomes = [answer.outcome for answer in four_ways(house, arguments)]
            assert outcomes == ["ok", "invalid", "denied", "error"]
    call_command("audit", "export", "--out", str(tmp_path / "out"), stdout=io.StringIO())
    places = {"table": table(), "log": log.getvalue()}
    places |= {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    found = [
        f"{what} in {place}"
        for what, secret, arguments in CORPUS
        for place, text in places.items()
        if any(piece in text for piece in pieces(secret, arguments))
    ]
    assert not found and len(CORPUS) >= 200


def test_T51_a_secret_as_a_name_is_masked_too(house: Company) -> None:
    token = house.tokens["stranger"]
    ask(house, token, request_id=token)
    ask(house, "take_refuse", arguments={"target": token})
    audit.event(SPACE, "policy_changed", agent=token, details={token: token})
    assert token[-20:] not in table() and verify().ok


def test_T51_computer_type_keeps_the_length_alone(house: Company) -> None:
    with registry.temporarily(taker("take_typed", redact=("target",))):
        ask(house, "take_typed", arguments={"target": "correct horse"})
        ask(house, "take_typed", "stranger", arguments={"target": "battery", "nonsense": 1})
    first, second = AuditRow.objects.filter(tool="take_typed").order_by("id")
    assert json.loads(first.arguments)["target"] == "[redacted, 13 characters]"
    assert "battery" not in second.arguments


def test_U01_no_sentinel_in_table_log_export_or_reply(house: Company, log: io.StringIO) -> None:
    arguments = {
        "headers": {"Authorization": "Bearer SENTINEL1"},
        "dsn": "postgres://u:SENTINEL2@h/db",
        "list": [{"apiKey": "SENTINEL3"}],
        "url": "https://example.org/?access_token=SENTINEL4",
        "note": "ok",
    }
    with rows_of(calls=4) as told:
        answers = four_ways(house, arguments)
    out = io.StringIO()
    call_command("audit", "export", stdout=out)
    replies = repr([(answer.error, answer.structured, answer.content) for answer in answers])
    for place in (table(), log.getvalue(), out.getvalue(), replies):
        assert "SENTINEL" not in place
    for kept in told.calls:
        assert '"note": "ok"' in kept.arguments
        assert (kept.agent, kept.timestamp[-1]) == ("owner", "Z") and kept.tool.startswith("take")
    assert [(kept.outcome, kept.reason) for kept in told.calls] == [
        ("ok", ""), ("invalid", "invalid_arguments"), ("denied", "human_only"), ("error", "internal"),
    ]  # fmt: skip


def test_rows_are_read_by_workspace_and_filter(house: Company) -> None:
    ask(house, "take", arguments={"data": {"n": 1}})
    ask(house, "take_human", "colleague")
    audit.insert(row(1))
    space = house.space.id
    assert [kept.agent for kept in audit_reads.rows(space)] == ["colleague", "owner"]
    assert audit_reads.rows(space, outcome="denied", agent="").get().tool == "take_human"
    newest = audit_reads.rows(space, tool="take").get()
    assert not audit_reads.rows(space, since=newest.timestamp, until=newest.timestamp).exists()
    assert audit_reads.rows(space, since=newest.timestamp).count() == 2
    with pytest.raises(TypeError, match="no filter named colour"):
        audit_reads.rows(space, colour="red")


def test_a_row_is_shown_with_the_fields_of_rest(house: Company) -> None:
    ask(house, "take", arguments={"data": {"n": 1}}, request_id="r1", transport="http")
    shown = audit_reads.shown(audit_reads.rows(house.space.id).get())
    assert {
        "tool": "take",
        "outcome": "ok",
        "reason": "",
        "agent": "owner",
        "request_id": "r1",
    }.items() <= shown.items()
    assert shown["arguments"] == {"data": {"n": 1}} and shown["scopes_provided"] == ["admin"]
    assert isinstance(shown["ms"], float) and shown["transport"] == "http" and shown["key"]
    assert audit_reads.parsed("no JSON", {}) == "no JSON"


def test_an_argument_fault_names_the_parameter_without_its_value(house: Company) -> None:
    with registry.temporarily(taker("take_invalid", InvalidArguments)):
        assert ask(house, "take_invalid").outcome == "invalid"
