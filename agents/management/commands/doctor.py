"""`doctor`: what is configured, what is missing, how to mend it."""

import json
import sys
from typing import Any

from django.core.management import BaseCommand
from django.core.management.base import CommandParser

from duduclaw.doctor import Finding, Level, examine


class Command(BaseCommand):
    """Exit 0 when everything works, 1 when a fault was found. Warnings do not count."""

    help = "Say what is configured, what is missing and how to mend it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`--json` prints a list of objects."""
        parser.add_argument("--json", action="store_true", help="print {check, level, says, mend} objects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print every finding; the mend stands under what it mends."""
        findings = examine()
        if options["json"]:
            self.stdout.write(json.dumps([finding.as_json() for finding in findings], indent=1))
        else:
            for finding in findings:
                self.stdout.write(line(finding))
        if any(finding.level is Level.FAULT for finding in findings):
            sys.exit(1)


def line(finding: Finding) -> str:
    """One finding for people."""
    text = f"{finding.level:<8}{finding.check}: {finding.says}"
    return f"{text}\n        mend: {finding.mend}" if finding.mend else text
