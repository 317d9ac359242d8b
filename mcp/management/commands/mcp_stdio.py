"""`manage.py mcp_stdio`: manage.py runs the bridge before Django loads; this only puts it into the help."""

from typing import Any

from django.core.management.base import BaseCommand

from mcp import stdio


class Command(BaseCommand):
    """The stdio bridge for MCP clients."""

    help = "Bridge an MCP client on stdin and stdout to the server at DUDUCLAW_URL."

    def handle(self, *args: Any, **options: Any) -> None:
        raise SystemExit(stdio.main([]))
