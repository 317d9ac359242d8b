"""`first_run`: bring the database to this code's schema and, once, create the first-run company."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command
from django.db import DatabaseError, connection

from agents.actions.company import Credentials, ensure_company, renew_credentials
from agents.models import Workspace
from duduclaw.doctor import unreachable
from duduclaw.lib.ports import address

FILE = "first-run.json"


class Command(BaseCommand):
    """Run by the supervisor before everything else. Running it again changes nothing."""

    help = "Migrate, and create the first-run company unless it stands."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit 1 with one line when the database cannot be used."""
        try:
            connection.ensure_connection()
        except DatabaseError as error:
            found = unreachable(error)
            raise CommandError(f"{found.says}; {found.mend}") from error
        call_command("migrate", interactive=False, verbosity=0)
        path = settings.HOME / FILE
        if not (path.exists() and Workspace.objects.exists()):
            write(path, renew_credentials(ensure_company()))


def write(path: Path, made: Credentials) -> None:
    """Put the file in place whole. A crash before this point costs nothing: the next run makes new credentials."""
    place = address(settings.HOST, settings.PORT)
    content = {
        "url": f"http://{place}",
        "mcp_url": f"http://{place}/mcp",
        "ws_url": f"ws://{place}/ws/mcp/",
        "admin": {"username": made.username, "password": made.password},
        "keys": made.keys,
    }
    draft = path.with_name(f".{path.name}")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)
