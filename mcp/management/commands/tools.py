"""`tools`: the catalogue, where a tool is written, and what listing it costs."""

import inspect
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from agents.actions.presets import PRESETS
from mcp import registry
from mcp.errors import Refused
from mcp.explain import schema_tokens
from mcp.management.terminal import TerminalCommand
from mcp.registry import Tool
from mcp.render import definition


class Command(TerminalCommand):
    """Needs no database."""

    help = "List the tools; --where NAME prints file and line, --budget what the schemas cost."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--where", metavar="NAME", help="print the file and line of one tool")
        group.add_argument("--budget", action="store_true", help="print bytes and tokens of families and presets")

    def run(self, options: dict[str, Any]) -> None:
        if options["where"]:
            found = where(options["where"])
            self.show(options, found, lambda: [f"{found['file']}:{found['line']}"])
        elif options["budget"]:
            costs = budget()
            self.show(options, costs, lambda: bill(costs))
        else:
            rows = [row(tool) for tool in registry.every()]
            self.show(options, rows, lambda: [f"{one['name']:<28}{one['family']:<16}{one['scope']}" for one in rows])


def where(name: str) -> dict[str, Any]:
    """File (below the project) and line of a tool's function."""
    tool = registry.get(name)
    if tool is None:
        raise Refused("not_found", f"no tool {name[:64]}")
    file = Path(inspect.getsourcefile(tool.function) or "").relative_to(settings.BASE_DIR)
    return {"name": name, "file": str(file), "line": inspect.getsourcelines(tool.function)[1]}


def row(tool: Tool) -> dict[str, Any]:
    """One tool of the list."""
    return {
        "name": tool.name,
        "family": tool.family,
        "scope": tool.scope,
        "switch": tool.switch,
        "annotations": tool.annotations,
        "description": tool.description,
        "schema_tokens": schema_tokens(tool),
    }


def cost(tools: list[Tool]) -> dict[str, int]:
    """What listing some tools costs."""
    sizes = [len(definition(tool).encode()) for tool in tools]
    return {"tools": len(tools), "bytes": sum(sizes), "tokens": sum(schema_tokens(tool) for tool in tools)}


def budget() -> dict[str, dict[str, dict[str, int]]]:
    """Costs by family and by preset, and of all."""
    every = list(registry.every())
    families = sorted({tool.family for tool in every})
    return {
        "families": {name: cost([tool for tool in every if tool.family == name]) for name in families},
        "presets": {name: cost([tool for tool in every if tool.name in tools]) for name, tools in PRESETS.items()},
        "all": {"all": cost(every)},
    }


def bill(costs: dict[str, dict[str, dict[str, int]]]) -> list[str]:
    """The costs for people."""
    return [
        f"{kind:<10}{name:<20}{one['tools']:>5} tools {one['bytes']:>8} bytes {one['tokens']:>7} tokens"
        for kind, group in costs.items()
        for name, one in group.items()
    ]
