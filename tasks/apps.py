"""The app of the board."""

from django.apps import AppConfig


class TasksConfig(AppConfig):
    """What is to be done."""

    name = "tasks"
