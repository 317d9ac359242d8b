"""Triggers that keep the audit tables append-only; retention may delete only below a tombstone block."""

from typing import Any

from django.db import connections

BELOW = "(SELECT COALESCE(MAX(last), 0) FROM mcp_auditblock WHERE tombstone)"
ROW_SEQ = "(SELECT seq FROM mcp_auditseal WHERE row_uid = OLD.uid)"
# table -> the condition under which a DELETE is refused
GUARDED = {
    "mcp_auditrow": f"COALESCE({ROW_SEQ} > {BELOW}, TRUE)",
    "mcp_auditseal": f"OLD.seq > {BELOW}",
    "mcp_auditblock": f"OLD.last > {BELOW}",
}
TEXT = "permission denied: the audit record is append-only"


def statements(vendor: str) -> list[str]:
    """The DDL for `sqlite` or `postgresql`."""
    make = {"sqlite": sqlite, "postgresql": postgres}[vendor]
    made: list[str] = []
    for table, refused in GUARDED.items():
        made += make(f"ddc_audit_{table}_update", table, "UPDATE", "TRUE")
        made += make(f"ddc_audit_{table}_delete", table, "DELETE", refused)
    return made


def sqlite(name: str, table: str, event: str, refused: str) -> list[str]:
    return [
        f"DROP TRIGGER IF EXISTS {name}",
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW WHEN {refused} "
        f"BEGIN SELECT RAISE(ABORT, '{TEXT}'); END",
    ]


def postgres(name: str, table: str, event: str, refused: str) -> list[str]:
    kept = "NEW" if event == "UPDATE" else "OLD"
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS $$ BEGIN IF {refused} THEN "
        f"RAISE EXCEPTION '{TEXT}' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN {kept}; END $$ "
        "LANGUAGE plpgsql",
        f"DROP TRIGGER IF EXISTS {name} ON {table}",
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


def install_after_migrate(using: str, **kwargs: Any) -> None:
    """Receiver of `post_migrate`."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for statement in statements(connection.vendor):
            cursor.execute(statement)
