"""The project as an app: it holds the platform's own jobs and commands."""

from django.apps import AppConfig


class DuduclawConfig(AppConfig):
    """Settings stay in `duduclaw.settings`; there are no models here."""

    name = "duduclaw"
