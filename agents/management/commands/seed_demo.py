"""`seed_demo`: put back what is missing of the first-run company."""

import json
from typing import Any

from django.core.management import BaseCommand
from django.core.management.base import CommandParser

from agents.actions.company import ensure_company
from agents.actions.system import platform
from agents.models import Agent
from tasks.models import Task


class Command(BaseCommand):
    """Keys and passwords are untouched: `first_run` makes those once."""

    help = "Create the demo company's agents and board where they are missing."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--json` prints one object."""
        parser.add_argument("--json", action="store_true", help="print {workspace, agents, tasks}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what stands now."""
        workspace = ensure_company()
        by = platform(workspace)
        agents = list(Agent.objects.for_who(by).living().values_list("name", flat=True))
        tasks = Task.objects.for_who(by).count()
        if options["json"]:
            self.stdout.write(json.dumps({"workspace": workspace.slug, "agents": agents, "tasks": tasks}))
        else:
            self.stdout.write(f"workspace {workspace.slug}: agents {', '.join(agents)}; {tasks} tasks")
