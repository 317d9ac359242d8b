"""The app of what agents know."""

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """Working state now; memory, wiki, skills and beliefs later."""

    name = "duduclaw.knowledge"
    label = "knowledge"
