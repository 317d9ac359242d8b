"""Who acts: workspaces, people, agents, keys, grants, approvals, policy."""

from agents.models.agent import NEW_NAME, Agent, Capabilities, Permissions
from agents.models.grant import Approval, Grant
from agents.models.key import Key
from agents.models.policy import PolicyChange, Version
from agents.models.workspace import FleetStop, Membership, PlatformSettings, Role, Workspace

__all__ = [
    "NEW_NAME",
    "Agent",
    "Approval",
    "Capabilities",
    "FleetStop",
    "Grant",
    "Key",
    "Membership",
    "Permissions",
    "PlatformSettings",
    "PolicyChange",
    "Role",
    "Version",
    "Workspace",
]
