"""The admin of principals and their rights, one module a subject."""

from agents.admin import agent, approval, capability, fleet, grant, key, people, record, settings

__all__ = ["agent", "approval", "capability", "fleet", "grant", "key", "people", "record", "settings"]
