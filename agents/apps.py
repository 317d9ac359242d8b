"""The app of principals and their rights."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from agents import checks, versions


class AgentsConfig(AppConfig):
    """Puts the version triggers in place after every migrate; importing `checks` registers them."""

    name = "agents"
    checks = checks

    def ready(self) -> None:
        post_migrate.connect(versions.install_after_migrate, sender=self)
