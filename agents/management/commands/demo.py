"""`demo`: walk the first-run company through a read, a refusal, a request, its approval, the call and its audit."""

import json
from textwrap import shorten
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser

from agents.actions.company import SCOPED_TOOL
from duduclaw.lib.ports import address
from duduclaw.walk import Door, Step, WalkFailed, walk

WRITER = "writer"
WIDTH = 100  # characters of a step's detail; --json has all of it
ARGUMENTS = {"title": "A help page needs a title", "description": "Written by the demo."}


class Command(BaseCommand):
    """Talks to the running server, as any client would; exit 1 when a step does not go as promised."""

    help = "Walk the first-run company through the running server and print every step."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`--url` for a server elsewhere, `--json` for one list of objects."""
        parser.add_argument(
            "--url", default=f"http://{address(settings.HOST, settings.PORT)}", help="the server's address"
        )
        parser.add_argument("--json", action="store_true", help="print {who, does, outcome, detail} objects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each step when it has happened; with `--json` all of them at the end."""
        path = settings.HOME / "first-run.json"
        try:
            operator = Door(options["url"], json.loads(path.read_text(encoding="utf-8"))["keys"]["operator"])
        except FileNotFoundError as error:
            raise CommandError(f"{path} does not exist; start the server with `make run`") from error
        steps: list[Step] = []
        try:
            for step in walk(operator, WRITER, SCOPED_TOOL, ARGUMENTS):
                steps.append(step)
                if not options["json"]:
                    self.stdout.write(f"{step.who:<9}{step.does:<20}{step.outcome:<26}{shorten(step.detail, WIDTH)}")
        except WalkFailed as error:
            raise CommandError(str(error)) from error
        finally:
            if options["json"]:
                self.stdout.write(json.dumps([step.as_json() for step in steps], indent=1))
