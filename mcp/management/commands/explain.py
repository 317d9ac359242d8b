"""`explain AGENT TOOL`: the gates in order, who closed which, and the smallest set of edits that opens the tool."""

from typing import Any

from django.core.management.base import CommandParser

from agents.models import Key
from mcp import explain
from mcp.errors import Refused
from mcp.management.terminal import TerminalCommand, agent, somebody, workspace


class Command(TerminalCommand):
    """Exit 0 when it could be explained, whatever the verdict; 1 when agent, tool or key is not there."""

    help = "Say why an agent sees a tool or not, and what opens it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument("tool")
        parser.add_argument("--key", metavar="ID", help="judge the holder of this key")
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        by = somebody(workspace(options["workspace"]))
        row, key = agent(by, options["agent"]), None
        if options["key"]:
            key = Key.objects.for_who(by).filter(pk=options["key"]).select_related("agent").first()
            if key is None:
                raise Refused("not_found", "no such key")
        told = explain.explain(row, options["tool"], key)
        self.show(options, told, lambda: lines(options["agent"], options["tool"], told))


def lines(name: str, tool: str, told: dict[str, Any]) -> list[str]:
    """The explanation for people."""
    gate = f" at {told['gate']}" if told["gate"] else ""
    made = [f"{tool} is {told['verdict']} for {name}{gate}"]
    for step in told["trace"]:
        changed = f"  ({step['changed_by']}, {step['changed_at']})" if step["changed_by"] else ""
        made.append(f"  {step['gate']:<4}{'open  ' if step['open'] else 'CLOSED'} {step['why']}{changed}")
    made += [f"  mend: {edit['says']}\n        {edit['method']} {edit['path']} {edit['body']}" for edit in told["mend"]]
    if told["verdict"] == "hidden" and not told["mend"]:
        made.append("  no edit of policy opens it")
    return made
