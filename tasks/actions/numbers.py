"""Short numbers: T-1, T-2, ... of a workspace, without gaps."""

from django.db import connection

NEXT = (
    "INSERT INTO tasks_counter (workspace_id, kind, n) VALUES (%s, %s, 1) "
    "ON CONFLICT (workspace_id, kind) DO UPDATE SET n = tasks_counter.n + 1 RETURNING n"
)


def next_number(workspace: str, kind: str) -> int:
    """The next number of `task` or `issue`. Inside a transaction: others wait, and a rollback gives it back."""
    with connection.cursor() as cursor:
        cursor.execute(NEXT, (workspace, kind))
        return int(cursor.fetchone()[0])
