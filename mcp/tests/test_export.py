"""An export verifies without the database, and names its first broken place."""

import json
import shutil
import stat
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from duduclaw.lib import clock
from mcp import anchors, audit, chain, seal
from mcp.tests.record import SPACE, record, row, sql, superuser, write

pytestmark = [pytest.mark.engines, pytest.mark.django_db, pytest.mark.usefixtures("anchor_home")]
CALLS, EVENTS, BLOCKS = "tool_calls.jsonl", "security_audit.jsonl", "audit_blocks.jsonl"
OTHER = "0190a0e0-0000-7000-8000-000000000002"


def run(*args: str) -> tuple[int, str]:
    """Exit code and output of `audit ...`."""
    out, code = StringIO(), 0
    try:
        call_command("audit", *args, stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, out.getvalue()


def exported(target: Path, *args: str) -> Path:
    """A directory that `audit export` wrote."""
    assert run("export", "--out", str(target), *args)[0] == 0
    return target


def broken(directory: Path, *args: str) -> tuple[int, str] | None:
    """Number and kind of the damage that `audit verify --from` names."""
    code, text = run("verify", "--from", str(directory), "--json", *args)
    damage = json.loads(text)["damage"]
    assert code == (1 if damage else 0)
    return (damage["seq"], damage["kind"]) if damage else None


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_both_streams_carry_the_names_that_other_programs_read(tmp_path: Path) -> None:
    audit.insert(row(1))
    refused = row(
        2, outcome="denied", reason="needs_human", details='{"error_class": "delegation_denied", "target": "x"}'
    )
    audit.insert(refused)
    audit.event(SPACE, "permission_denied", call=refused, details={"permission": "can_create_agents"})
    call, denied = lines(exported(tmp_path / "out") / CALLS)
    assert {"seq": 1, "tool": "tasks_list", "tool_name": "tasks_list", "success": True}.items() <= call.items()
    assert {"agent": "analyst", "agent_id": "analyst", "outcome": "ok", "ms": 1.5}.items() <= call.items()
    assert call["params_summary"] == '{"limit": 1}' and call["arguments"] == {"limit": 1}
    assert call["scopes_provided"] == ["admin"] and "error_class" not in call and call["target"] == "writer-1"
    assert (denied["success"], denied["error_class"], denied["reason"], denied["target"]) == (
        False, "delegation_denied", "needs_human", "x",
    )  # fmt: skip
    (event,) = lines(tmp_path / "out" / EVENTS)
    assert (event["event_type"], event["agent_id"], event["severity"]) == ("permission_denied", "analyst", "warning")
    assert event["details"]["call"] == refused.uid and event["timestamp"].endswith("Z")


def test_an_export_is_sealed_first_private_and_verifies_without_the_database(tmp_path: Path) -> None:
    record(3)
    write(2, 16)
    out = exported(tmp_path / "out")
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    with CaptureQueriesContext(connection) as queries:
        assert broken(out) is None
    assert not len(queries)
    assert run("verify", "--from", str(out))[1] == "the record is whole; read 17 rows in 4 blocks, 0 not sealed yet\n"


def test_an_export_after_a_cut_verifies(tmp_path: Path) -> None:
    record(3)
    seal.cut(clock.now() + timedelta(seconds=1))
    assert broken(exported(tmp_path / "out")) is None


def test_the_key_is_read_from_a_file(tmp_path: Path, settings: Any) -> None:
    assert chain.key_of(settings.SECRET_KEY) == settings.AUDIT_KEY
    record(1)
    out, right, wrong = exported(tmp_path / "out"), tmp_path / "right", tmp_path / "wrong"
    right.write_text(settings.SECRET_KEY + "\n")
    wrong.write_text("0" * 64)
    assert broken(out, "--key", str(right)) is None
    assert broken(out, "--key", str(wrong)) == (1, "block_changed")
    with pytest.raises(CommandError):
        run("verify", "--from", str(out), "--key", str(tmp_path / "absent"))


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of a file."""
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def edit(path: Path, number: int, **over: Any) -> None:
    """Change fields of the line with that number."""
    text = [json.dumps({**line, **over}) if line.get("seq") == number else json.dumps(line) for line in lines(path)]
    path.write_text("\n".join(text) + "\n")


def swapped(text: list[str]) -> list[str]:
    text[1], text[4] = text[4], text[1]
    return text


DAMAGES: dict[str, tuple[Callable[[Path], Any], tuple[int, str]]] = {
    "a shown field": (lambda out: edit(out / CALLS, 7, outcome="denied"), (7, "row_changed")),
    "a shown field of an event": (lambda out: edit(out / EVENTS, 10, severity="critical"), (10, "row_changed")),
    "one more field": (lambda out: edit(out / CALLS, 7, note="x"), (7, "row_changed")),
    "a number": (lambda out: edit(out / CALLS, 7, seq=99), (7, "missing_seal")),
    "a mac": (lambda out: edit(out / CALLS, 7, mac="0" * 64), (7, "row_changed")),
    "a seal": (lambda out: edit(out / CALLS, 7, seal="0" * 64), (7, "seal_changed")),
    "a line removed": (lambda out: rewrite(out / CALLS, lambda text: text[:3] + text[4:]), (4, "missing_seal")),
    "a line of no JSON": (
        lambda out: rewrite(out / CALLS, lambda text: [*text[:3], "{\n", *text[4:]]),
        (4, "missing_seal"),
    ),
    "a line twice": (lambda out: rewrite(out / CALLS, lambda text: [text[0], *text]), (1, "double")),
    "two lines swapped": (lambda out: rewrite(out / CALLS, swapped), (2, "missing_seal")),
    "a tail of rows": (lambda out: rewrite(out / CALLS, lambda text: text[:-2]), (13, "missing_seal")),
    "a block": (lambda out: rewrite(out / BLOCKS, lambda text: [text[0], *text[2:]]), (6, "missing_block")),
    "a block of no JSON": (
        lambda out: rewrite(out / BLOCKS, lambda text: [text[0], "5\n", text[2]]),
        (6, "missing_block"),
    ),
    "a block of wrong types": (
        lambda out: rewrite(
            out / BLOCKS, lambda text: [text[0], text[1].replace('"last": 10', '"last": "10"'), text[2]]
        ),
        (6, "missing_block"),
    ),
    "a tail of blocks": (lambda out: rewrite(out / BLOCKS, lambda text: text[:2]), (11, "seal_without_block")),
    "the manifest": (
        lambda out: rewrite(out / "manifest.json", lambda text: [text[0].replace('"since": ""', '"since": "2020"')]),
        (16, "envelope"),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_export_is_named(name: str, tmp_path: Path) -> None:
    record(3)
    out = exported(tmp_path / "out")
    damage, expected = DAMAGES[name]
    damage(out)
    assert broken(out) == expected


def test_a_whole_tail_cut_from_an_export_is_found_by_its_anchors(tmp_path: Path) -> None:
    record(3)
    out = exported(tmp_path / "out")
    rewrite(out / CALLS, lambda text: text[:8])
    rewrite(out / EVENTS, lambda text: text[:2])
    rewrite(out / BLOCKS, lambda text: text[:2])
    assert broken(out) == (11, "tail_cut")
    copy = tmp_path / "copy.jsonl"
    shutil.copy(anchors.path(), copy)
    rewrite(out / anchors.NAME, lambda text: text[:2])
    assert broken(out) == (11, "envelope")
    assert broken(out, "--anchors", str(copy)) == (11, "tail_cut")


def test_a_damage_of_the_database_goes_into_the_export(tmp_path: Path) -> None:
    record(2)
    with superuser():
        sql("UPDATE mcp_auditrow SET outcome = 'denied' WHERE reason = 'reason-4'")
        sql("DELETE FROM mcp_auditrow WHERE reason = 'reason-8'")
    assert broken(exported(tmp_path / "out")) == (4, "row_changed")


def test_some_rows_are_exported_and_verify(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        with time_machine.travel(f"2026-05-0{day}T12:00:00Z", tick=False):
            audit.insert(row(day))
            audit.insert(row(day, workspace=OTHER))
            seal.seal()
    out = exported(tmp_path / "out", "--since", "2026-05-02", "--until", "2026-05-03T12:00:01Z", "--workspace", OTHER)
    assert [(line["seq"], line["stored"]["workspace"]) for line in lines(out / CALLS)] == [(4, OTHER), (6, OTHER)]
    assert SPACE not in "".join(path.read_text() for path in out.iterdir())
    assert broken(out) is None
    edit(out / CALLS, 6, outcome="denied")
    assert broken(out) == (6, "row_changed")
    rewrite(out / CALLS, lambda text: text[:1])
    assert broken(out) == (7, "envelope")


def test_a_stream_of_lines_goes_to_the_standard_output() -> None:
    record(2)
    code, text = run("export")
    assert code == 0 and [json.loads(line)["seq"] for line in text.splitlines()] == list(range(1, 11))


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    record(1)
    with pytest.raises(CommandError, match="manifest"):
        run("verify", "--from", str(tmp_path / "absent"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(CommandError, match="not empty"):
        run("export", "--out", str(tmp_path / "full"))
    out = exported(tmp_path / "out")
    (out / BLOCKS).unlink()
    with pytest.raises(CommandError, match=BLOCKS):
        run("verify", "--from", str(out))


def test_the_cut_by_command_keeps_evidence() -> None:
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False):
        record(2)
    record(1, start=11)
    with superuser():
        sql("UPDATE mcp_auditrow SET outcome = 'denied' WHERE reason = 'reason-2'")
    with pytest.raises(CommandError, match="not cut, the record is broken"):
        run("cut", "--keep-days", "30")
    with superuser():
        sql("UPDATE mcp_auditrow SET outcome = 'ok' WHERE reason = 'reason-2'")
    assert run("cut", "--before", "2026-01-02") == (0, "cut 10 rows; the record begins with 11\n")
    with pytest.raises(CommandError, match="--before or --keep-days"):
        run("cut")
