"""Which human role a change needs. Agents and clients have none, so they never pass."""

from agents.models import Role
from mcp.errors import Refused
from mcp.policy import Who


def has(by: Who, role: Role) -> bool:
    """Whether a person or operator key holds `role` or a higher one."""
    return by.is_human and by.role in Role.values and Role(by.role).rank >= role.rank


def need(by: Who, role: Role, what: str) -> None:
    """Raise unless `by` holds `role`; `what` says what was tried."""
    if not has(by, role):
        raise Refused("insufficient_role", f"{what} needs the role {role.value} or a higher one")
