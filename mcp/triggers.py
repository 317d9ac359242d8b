"""Triggers that keep the audit tables append-only; retention may delete only below a tombstone block.

They bind the application and whoever uses its rights. Who may drop a trigger can change a row: `audit verify`
finds that.
"""

from typing import Any

from django.db import connections

BELOW = "(SELECT COALESCE(MAX(last), 0) FROM mcp_auditblock WHERE tombstone = TRUE)"
ROW_SEQ = "(SELECT seq FROM mcp_auditseal WHERE row_uid = OLD.uid)"
# table -> the condition under which a DELETE is refused
GUARDED = {
    "mcp_auditrow": f"COALESCE({ROW_SEQ} > {BELOW}, TRUE)",
    "mcp_auditseal": f"OLD.seq > {BELOW}",
    "mcp_auditblock": f"OLD.tombstone = TRUE OR OLD.last > {BELOW}",
}
# REPLACE on SQLite deletes without a DELETE trigger: an INSERT that would hit one of these keys is refused.
KEYS = {
    "mcp_auditrow": ("id = NEW.id", "uid = NEW.uid"),
    "mcp_auditseal": ("seq = NEW.seq", "row_uid = NEW.row_uid"),
    "mcp_auditblock": (
        "id = NEW.id",
        "tombstone = NEW.tombstone AND first = NEW.first",
        "tombstone = NEW.tombstone AND last = NEW.last",
    ),
}
TEXT = "permission denied: the audit record is append-only"


def statements(vendor: str) -> list[str]:
    """The DDL for `sqlite` or `postgresql`."""
    return {"sqlite": sqlite, "postgresql": postgres}[vendor]()


def sqlite() -> list[str]:
    made: list[str] = []
    for table, refused in GUARDED.items():
        twin = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {key})" for key in KEYS[table])  # noqa: S608
        for event, when in (("UPDATE", "TRUE"), ("DELETE", refused), ("INSERT", twin)):
            name = f"ddc_audit_{table}_{event.lower()}"
            made += [
                f"DROP TRIGGER IF EXISTS {name}",
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW WHEN {when} "
                f"BEGIN SELECT RAISE(ABORT, '{TEXT}'); END",
            ]
    return made


def postgres() -> list[str]:
    made: list[str] = []
    for table, refused in GUARDED.items():
        for event, when, each in (
            ("UPDATE", "TRUE", "ROW"),
            ("DELETE", refused, "ROW"),
            ("TRUNCATE", "TRUE", "STATEMENT"),
        ):
            name = f"ddc_audit_{table}_{event.lower()}"
            made += [
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS $$ BEGIN IF {when} THEN "
                f"RAISE EXCEPTION '{TEXT}' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN OLD; END $$ "
                "LANGUAGE plpgsql",
                f"DROP TRIGGER IF EXISTS {name} ON {table}",
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH {each} EXECUTE FUNCTION {name}()",
            ]
    return made


def install_after_migrate(using: str, **kwargs: Any) -> None:
    """Receiver of `post_migrate`."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for statement in statements(connection.vendor):
            cursor.execute(statement)
