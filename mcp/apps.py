"""The app that speaks MCP. Its name shadows the official SDK, which lives in an environment of its own."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from mcp import tools, triggers


class McpConfig(AppConfig):
    """Puts the audit triggers in place after every migrate."""

    name = "mcp"

    def ready(self) -> None:
        tools.load()
        post_migrate.connect(triggers.install_after_migrate, sender=self)
