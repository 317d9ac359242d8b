"""What the commands share: one workspace, a person at a terminal as the caller, answers and exit codes.

0 done, 1 refused or not found, 2 usage. With `--json` an error is `{"error", "detail"}` on standard output.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from django.core.management import BaseCommand
from django.core.management.base import CommandParser
from django.db import transaction

from agents.actions.system import platform
from agents.models import Agent, Workspace
from mcp import audit
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who

REFUSED, USAGE = 1, 2


class TerminalCommand(BaseCommand):
    """A command for operators."""

    def add_arguments(self, parser: CommandParser) -> None:
        """`--json`, and `--workspace` where there are several."""
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--workspace", metavar="SLUG", help="needed only when there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command and turn what it refuses into an exit code."""
        try:
            self.run(options)
        except Refused as refusal:
            self.fail(refusal.code, refusal.detail, REFUSED, options["json"])
        except InvalidArguments as fault:
            self.fail("invalid_arguments", fault.message, USAGE, options["json"])

    def run(self, options: dict[str, Any]) -> None:
        """The command itself."""
        raise NotImplementedError

    def fail(self, error: str, detail: str, code: int, as_json: bool) -> NoReturn:
        """Say why on standard error, or as JSON on standard output, and leave."""
        if as_json:
            self.stdout.write(json.dumps({"error": error, "detail": detail}))
        else:
            self.stderr.write(f"{error}: {detail}")
        sys.exit(code)

    def show(self, options: dict[str, Any], value: Any, lines: Callable[[], list[str]]) -> None:
        """Print the value as JSON or as lines for people."""
        self.stdout.write(json.dumps(value, indent=1) if options["json"] else "\n".join(lines()))


def workspace(slug: str | None) -> Workspace:
    """The workspace of that slug, or the only one."""
    found = list(Workspace.objects.filter(slug=slug) if slug else Workspace.objects.order_by("slug")[:20])
    if not found:
        raise Refused("not_found", f"no workspace {slug}" if slug else "there is no workspace yet; run first_run")
    if len(found) > 1:
        raise InvalidArguments(f"--workspace: name one of {', '.join(row.slug for row in found)}", "workspace")
    return found[0]


def somebody(space: Workspace) -> Who:
    """The person at the terminal: the platform's rights under a name of its own."""
    return replace(platform(space), name="terminal")


def agent(by: Who, name: str) -> Agent:
    """The agent of that name, removed ones not."""
    found: Agent | None = Agent.objects.for_who(by).exclude(status=Agent.Status.REMOVED).filter(name=name).first()
    if found is None:
        raise Refused("not_found", f"no agent {name[:64]}")
    return found


def recorded(by: Who, event: str, change: Callable[[], Any], **details: Any) -> Any:
    """Make a change and write its event in the same transaction."""
    with transaction.atomic():
        result = change()
        audit.event(by.workspace, event, agent=by.name, details=details)
    return result
