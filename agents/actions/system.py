"""The platform itself as an actor: first run, demo data, jobs."""

from agents.models import Role, Workspace
from mcp import scopes
from mcp.policy import Who


def platform(workspace: Workspace) -> Who:
    """A `Who` for what the platform does on its own account in one workspace."""
    return Who(
        kind="operator",
        workspace=workspace.id,
        name="platform",
        role=Role.ADMIN,
        scopes=frozenset({scopes.ADMIN}),
    )
