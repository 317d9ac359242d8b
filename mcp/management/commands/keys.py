"""`keys create|revoke|list`: keys from the terminal. A new key is printed once."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from agents.actions.keys import create_key, revoke_key
from agents.models import Key, Role
from duduclaw.lib import clock
from mcp.errors import Refused
from mcp.management.terminal import TerminalCommand, agent, recorded, somebody, workspace
from mcp.policy import Who


class Command(TerminalCommand):
    """Exit 1 when the agent or key is not there, or the key is revoked already."""

    help = "Make, revoke and list keys."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a key and print it once")
        create.add_argument("--kind", required=True, choices=Key.Kind.values)
        create.add_argument("--agent", metavar="NAME", help="for agent and run keys")
        create.add_argument("--scopes", metavar="A,B", help="comma list; absent: what the kind usually holds")
        create.add_argument("--role", choices=Role.values, default="", help="for operator keys")
        create.add_argument("--client-id", default="", help="who acts, for operator and external keys")
        create.add_argument("--label", default="")
        create.add_argument("--days", type=int, help="1 to 365; 30 when absent")
        super().add_arguments(create)
        revoke = verbs.add_parser("revoke", help="end a key now")
        revoke.add_argument("key", help="id or prefix")
        super().add_arguments(revoke)
        super().add_arguments(verbs.add_parser("list", help="all keys, without their secrets"))

    def run(self, options: dict[str, Any]) -> None:
        by = somebody(workspace(options["workspace"]))
        {"create": self.create, "revoke": self.revoke, "list": self.list}[options["verb"]](by, options)

    def create(self, by: Who, options: dict[str, Any]) -> None:
        """Make a key."""
        scopes = options["scopes"]
        key, token = recorded(
            by,
            "key_created",
            lambda: create_key(
                by=by,
                kind=options["kind"],
                agent=agent(by, options["agent"]) if options["agent"] else None,
                scopes_held=None if scopes is None else [scope for scope in scopes.split(",") if scope],
                role=options["role"],
                client_id=options["client_id"],
                label=options["label"],
                expires_at=None if options["days"] is None else clock.now() + timedelta(days=options["days"]),
            ),
            kind=options["kind"],
        )
        self.show(options, {"id": key.id, "key": token, **shown(key)}, lambda: [token])

    def revoke(self, by: Who, options: dict[str, Any]) -> None:
        """End a key."""
        mine = Key.objects.for_who(by)
        key = mine.filter(pk=options["key"]).first() or mine.filter(prefix=options["key"]).first()
        if key is None:
            raise Refused("not_found", "no such key")
        done = recorded(by, "key_revoked", lambda: revoke_key(key, by=by), key=key.id)
        self.show(options, shown(done), lambda: [f"{done.prefix} is revoked"])

    def list(self, by: Who, options: dict[str, Any]) -> None:
        """All keys, newest first."""
        rows = [shown(key) for key in Key.objects.for_who(by).select_related("agent")]
        self.show(options, rows, lambda: [line(row) for row in rows])


def shown(key: Key) -> dict[str, Any]:
    """A key without its secret."""
    return {
        "id": key.id,
        "kind": key.kind,
        "agent": key.agent.name if key.agent else None,
        "client_id": key.client_id,
        "label": key.label,
        "prefix": key.prefix,
        "scopes": key.scopes,
        "role": key.role,
        "expires_at": clock.stamp(key.expires_at),
        "revoked_at": clock.stamp(key.revoked_at) if key.revoked_at else None,
    }


def line(row: dict[str, Any]) -> str:
    """One key for people."""
    state = "revoked" if row["revoked_at"] else f"until {row['expires_at'][:10]}"
    return f"{row['id']}  {row['prefix']}  {row['kind']:<9}{row['client_id']:<24}{state}"
