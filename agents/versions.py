"""What decides a right, and the database triggers that number its changes. Application code never bumps.

`DECIDING` is the one literal map: table -> (version kind, column that names the thing, deciding columns).
An insert, a delete, or a change of one of the columns raises the number of (kind, that column's value).
"""

from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


class Deciding(NamedTuple):
    """Which version a table's rows carry and which of its columns decide."""

    kind: str
    ref: str
    columns: tuple[str, ...]


LISTS = (
    "allowed_tools",
    "denied_tools",
    "scoped_tools",
    "approval_required_tools",
    "irreversible_tools",
    "maybe_irreversible_tools",
)
SWITCHES = ("os_native", "recording", "system_operator", "codrive", "computer_use", "fork", "static_catalog")
FLAGS = ("can_create_agents", "can_send_cross_agent", "can_schedule_tasks", "can_modify_own_skills")
DECIDING: dict[str, Deciding] = {
    "agents_agent": Deciding("agent", "id", ("workspace_id", "name", "status", "department")),
    "agents_capabilities": Deciding("agent", "agent_id", (*LISTS, *SWITCHES, "db_sources")),
    "agents_permissions": Deciding("agent", "agent_id", FLAGS),
    "agents_grant": Deciding("agent", "agent_id", ("tool", "expires_at", "revoked_at")),
    "agents_key": Deciding(
        "key",
        "id",
        (
            "workspace_id",
            "kind",
            "agent_id",
            "client_id",
            "prefix",
            "digest",
            "scopes",
            "role",
            "task_id",
            "expires_at",
            "revoked_at",
        ),
    ),
    "agents_platformsettings": Deciding("workspace", "workspace_id", ("integrations", "responsibilities", "rate")),
    "agents_fleetstop": Deciding("workspace", "workspace_id", ("scope", "target", "released_at")),
    "agents_membership": Deciding("user", "user_id", ("workspace_id", "role")),
    "auth_user": Deciding("user", "id", ("is_active", "username")),
}
TEXT = {"sqlite": "CAST({0}.{1} AS TEXT)", "postgresql": "{0}.{1}::text"}
BUMP = (
    "INSERT INTO agents_version (kind, ref, n) VALUES ('{kind}', {ref}, 1) "
    "ON CONFLICT (kind, ref) DO UPDATE SET n = agents_version.n + 1;"
)


def statements(vendor: str) -> list[str]:
    """The DDL that (re)creates every version trigger, for `sqlite` or `postgresql`."""
    make = {"sqlite": sqlite_trigger, "postgresql": postgres_trigger}[vendor]
    made: list[str] = []
    for table, deciding in DECIDING.items():
        for event, rows in (("INSERT", ("NEW",)), ("DELETE", ("OLD",)), ("UPDATE", ("OLD", "NEW"))):
            body = " ".join(BUMP.format(kind=deciding.kind, ref=TEXT[vendor].format(row, deciding.ref)) for row in rows)
            made += make(table, event, deciding, body)
    return made


def condition(deciding: Deciding, differs: str) -> str:
    """True when an UPDATE changed a deciding column."""
    return " OR ".join(f"OLD.{column} {differs} NEW.{column}" for column in (deciding.ref, *deciding.columns))


def sqlite_trigger(table: str, event: str, deciding: Deciding, body: str) -> list[str]:
    name = f"ddc_version_{table}_{event.lower()}"
    when = f"WHEN {condition(deciding, 'IS NOT')} " if event == "UPDATE" else ""
    return [
        f"DROP TRIGGER IF EXISTS {name}",
        f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {when}BEGIN {body} END",
    ]


def postgres_trigger(table: str, event: str, deciding: Deciding, body: str) -> list[str]:
    name = f"ddc_version_{table}_{event.lower()}"
    when = f"WHEN ({condition(deciding, 'IS DISTINCT FROM')}) " if event == "UPDATE" else ""
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS $$ BEGIN {body} RETURN NULL; END $$ LANGUAGE plpgsql",
        f"DROP TRIGGER IF EXISTS {name} ON {table}",
        f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {when}EXECUTE FUNCTION {name}()",
    ]


def install(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers anew; harmless when they stand already."""
    with connection.cursor() as cursor:
        for statement in statements(connection.vendor):
            cursor.execute(statement)


def install_after_migrate(using: str, **kwargs: Any) -> None:
    """Receiver of `post_migrate`: SQLite drops a table's triggers when a migration remakes it.

    What changed before they stood again moved no number, so every number moves.
    """
    connection = connections[using]
    install(connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_version SET n = n + 1")
