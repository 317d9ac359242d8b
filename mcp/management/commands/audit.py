"""`audit verify|export|cut`: prove the record, hand it out, and let go of what is old."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from duduclaw.lib import clock
from mcp import export, seal
from mcp.chain import key_of
from mcp.exported import Directory, NotAnExport
from mcp.record import Report
from mcp.stored import Database
from mcp.verify import examine, verify


class Command(BaseCommand):
    """Exit 0: done, nothing broken. Exit 1: broken, or refused. Exit 2: usage."""

    help = "Verify the audit record, export it, or cut what is old."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        checks = verbs.add_parser("verify", help="name the first broken place; exit 1 when there is one")
        checks.add_argument("--json", action="store_true", help="print the report as JSON")
        checks.add_argument("--from", dest="source", type=Path, metavar="DIR", help="an export, not the database")
        checks.add_argument(
            "--key", type=Path, metavar="FILE", help="the secret-key file that the record was made with"
        )
        checks.add_argument("--anchors", type=Path, metavar="FILE", help="a copy of the anchor file, kept elsewhere")
        exports = verbs.add_parser("export", help="write tool_calls.jsonl and security_audit.jsonl, verifiable offline")
        exports.add_argument("--out", default="-", metavar="DIR", help="an empty or new directory, or - for stdout")
        exports.add_argument("--since", type=moment, metavar="TIME", help="RFC 3339, a date counts from midnight UTC")
        exports.add_argument("--until", type=moment, metavar="TIME", help="as --since, exclusive")
        exports.add_argument("--workspace", default="", metavar="ID", help="rows of one workspace")
        cuts = verbs.add_parser("cut", help="remove whole blocks sealed before a time; a signed tombstone stays")
        cuts.add_argument("--before", type=moment, metavar="TIME", help="RFC 3339 or a date")
        cuts.add_argument("--keep-days", type=int, metavar="N", help="instead of --before: so many days stay")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, str(options["verb"]))(**options)

    def verify(self, *, source: Path | None, key: Path | None, anchors: Path | None, **options: Any) -> None:
        """Print the report."""
        try:
            secret = key_of(key.read_text(encoding="ascii").strip()) if key else settings.AUDIT_KEY
            report = self.examined(source, secret, anchors)
        except (OSError, NotAnExport, UnicodeDecodeError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"ok": report.ok, **asdict(report)}))
        else:
            self.stdout.write(words(report))
        if not report.ok:
            sys.exit(1)

    def examined(self, source: Path | None, key: bytes, anchors: Path | None) -> Report:
        """The report about an export or the database."""
        if source is not None:
            return examine(Directory(source, key, anchors), key)
        return examine(Database(anchors), key) if anchors or key != settings.AUDIT_KEY else verify()

    def export(self, *, out: str, since: datetime | None, until: datetime | None, workspace: str, **_: Any) -> None:
        """Seal what is new, then write."""
        while seal.seal():
            pass
        chosen = export.Choice(stamp(since), stamp(until), workspace)
        if out == "-":
            for line in export.lines(chosen):
                self.stdout.write(line)
            return
        try:
            counts = export.to_directory(Path(out), chosen)
        except FileExistsError as error:
            raise CommandError(f"{error}: give an empty or a new directory") from error
        self.stdout.write(" ".join(f"{name} {count}" for name, count in counts.items()))

    def cut(self, *, before: datetime | None, keep_days: int | None, **_: Any) -> None:
        """Only a record that verifies is cut: evidence stays."""
        if (before is None) == (keep_days is None):
            raise CommandError("give --before or --keep-days", returncode=2)
        report = verify()
        if report.damage:
            raise CommandError(f"not cut, the record is broken: {report.damage.text} (number {report.damage.seq})")
        removed = seal.cut(before or clock.now() - timedelta(days=keep_days or 0))
        self.stdout.write(f"cut {removed} rows; the record begins with {verify().cut_to + 1}")


def moment(text: str) -> datetime:
    """An RFC 3339 time or a date, UTC unless it says otherwise."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(when: datetime | None) -> str:
    """The moment as rows carry it; "" when none is asked for."""
    return clock.stamp(when) if when else ""


def words(report: Report) -> str:
    """The report for people."""
    read = f"{report.rows} rows in {report.blocks} blocks, {report.waiting} not sealed yet"
    cut = [f"numbers up to {report.cut_to} were cut by retention"] if report.cut_to else []
    found = f"BROKEN at number {report.damage.seq}: {report.damage.text}" if report.damage else "the record is whole"
    return "\n".join([f"{found}; read {read}", *cut, *(f"note: {note}" for note in report.notes)])
