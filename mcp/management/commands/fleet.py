"""`fleet stop|release`: stop work from the terminal, and let it go on."""

from typing import Any

from django.core.management.base import CommandParser

from agents.actions import fleet
from mcp.management.terminal import TerminalCommand, recorded, somebody, workspace


class Command(TerminalCommand):
    """Exit 1 when there is no such scope, or nothing to release."""

    help = "Stop all work, a department or an agent; release it again."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        stop = verbs.add_parser("stop", help="refuse every call from now on")
        stop.add_argument("scope", nargs="?", default="all", help="all, a department or an agent")
        stop.add_argument("--reason", required=True, help="why; every operator reads it")
        super().add_arguments(stop)
        release = verbs.add_parser("release", help="end exactly that stop")
        release.add_argument("scope", nargs="?", default="all", help="all, a department or an agent")
        super().add_arguments(release)

    def run(self, options: dict[str, Any]) -> None:
        by, scope, reason = somebody(workspace(options["workspace"])), options["scope"], str(options.get("reason", ""))
        if options["verb"] == "stop":
            told = recorded(
                by, "fleet_stopped", lambda: fleet.stop(by=by, scope=scope, reason=reason), scope=scope, reason=reason
            )
            words = f"{scope} is stopped"
        else:
            told = recorded(by, "fleet_released", lambda: fleet.release(by=by, scope=scope), scope=scope)
            words = f"{scope} is released"
        self.show(options, told, lambda: [f"{words}; {told['stopped']} agents of it stand still"])
