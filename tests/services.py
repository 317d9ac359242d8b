"""What the machine offers beside Python. A test that needs more than it has is skipped by name, or fails in CI."""

import os
import shutil
from functools import cache
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent
POSTGRES = os.environ.get("DUDUCLAW_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres")
CLIENTS = ROOT / "tests" / "clients"


@cache
def postgres_url() -> str | None:
    """Address of a server on which databases may be created."""
    try:
        psycopg.connect(POSTGRES, connect_timeout=3).close()
    except psycopg.OperationalError:
        return None
    return POSTGRES


def chromium() -> str | None:
    """Path of the browser."""
    return shutil.which("chromium")


def redis_server() -> str | None:
    """Path of a Redis that is not the embedded Valkey."""
    return shutil.which("redis-server")


def node() -> str | None:
    """Path of Node 22; `tests/clients/node_modules` stands when it is set."""
    path = CLIENTS / "node_modules" / ".bin" / "node"
    return str(path) if path.exists() and (CLIENTS / "node_modules" / ".stamp").exists() else None


def sdk_python() -> str | None:
    """Interpreter with the MCP client library; run it with `-I`, or our `mcp` package shadows theirs."""
    path = ROOT / ".venv-sdk" / "bin" / "python"
    return str(path) if path.exists() else None


def need(name: str, found: str | None) -> str:
    """`found`, or the end of the test: a skip that names the service, a failure where services are required."""
    if found is not None:
        return found
    if os.environ.get("DUDUCLAW_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{name} is missing and DUDUCLAW_REQUIRE_SERVICES=1")
    pytest.skip(f"needs {name}")
