"""`first_run`: bring the database to this code's schema and, once, create the first-run company."""

from typing import Any

from django.core.management import BaseCommand, CommandError, call_command
from django.db import DatabaseError, connection

from duduclaw.doctor import unreachable


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
