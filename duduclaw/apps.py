"""The project as an app: it holds the platform's own jobs and commands."""

from django.apps import AppConfig
from django.conf import settings

from duduclaw.lib import reporting


class DuduclawConfig(AppConfig):
    """Settings stay in `duduclaw.settings`; there are no models here."""

    name = "duduclaw"

    def ready(self) -> None:
        """Errors of every process that uses Django are reported alike."""
        reporting.start(settings.SENTRY_DSN)
