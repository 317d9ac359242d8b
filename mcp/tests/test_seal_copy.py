"""A record moved from SQLite to PostgreSQL, as an operator moves it, verifies there and goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stack import clean_env, manage

WRITE = """
from django.core.management import call_command
from mcp import audit, seal
call_command('migrate', verbosity=0)
texts = ['{"n": 1e22}', '{"n": 0.1, "big": 12345678901234567890}', '{"t": "\\u2028 \\u00e9 \\U0001f600"}', '{}', '']
for number in range(200):
    audit.insert(audit.Row('tool_calls', 'w', tool='tasks_list', ms='1.50', arguments=texts[number % 5]))
    if number % 70 == 69:
        seal.seal()
seal.seal()
call_command('audit', 'verify', '--json')
call_command('dumpdata', 'mcp', '-o', 'COPY', verbosity=0)
"""
READ = """
from django.core.management import call_command
from mcp import audit, seal
call_command('migrate', verbosity=0)
call_command('loaddata', 'COPY', verbosity=0)
call_command('audit', 'verify', '--json')
audit.insert(audit.Row('tool_calls', 'w'))
seal.seal()
call_command('audit', 'verify', '--json')
"""


@pytest.mark.postgres
def test_T43_macs_survive_the_way_from_sqlite_to_postgresql(home: Path, pg_database: str) -> None:
    copy, here = str(home / "copy.json"), clean_env(home)
    there = {**here, "DATABASE_URL": pg_database}
    (before,) = reports(here, WRITE.replace("COPY", copy))
    after, later = reports(there, READ.replace("COPY", copy))
    assert before == after and (after["rows"], after["ok"]) == (200, True)
    assert (later["ok"], later["last"]) == (True, 201)


def reports(env: dict[str, str], code: str) -> list[dict[str, Any]]:
    """What `audit verify` printed while a process of that environment ran the code."""
    lines = manage(env, "shell", "-v0", "-c", code).stdout.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
