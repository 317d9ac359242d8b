"""Planted faults: the start, or `doctor`, names each and says how to mend it. All run as an operator would."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duduclaw.lib import clock, lock, valkey
from duduclaw.tests.serving import environment, try_to_serve
from tests.stack import free_port, manage, start_valkey


def refusal(env: dict[str, str]) -> str:
    """The line with which the start refuses."""
    done = try_to_serve(env)
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith('{"time"')]
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("CommandError: ")


@contextmanager
def listener() -> Iterator[int]:
    """A port that another program listens on."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        yield port


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "80000", "must be a whole number from 1 to 65535"),
        ("PORT", "http", "must be a whole number"),
        ("DUDUCLAW_DEBUG", "maybe", "must be 1 or 0"),
        ("LOG_LEVEL", "LOUD", "must be one of DEBUG"),
        ("DATABASE_URL", "mysql://root@127.0.0.1/x", "only sqlite:// and postgres://"),
        ("DATABASE_URL_FILE", "/nowhere/url", "cannot read /nowhere/url"),
        ("REDIS_URL", "unix:///nowhere/redis.sock", "unset REDIS_URL"),
        ("REDIS_URL", "http://127.0.0.1/", "redis://"),
        ("DUDUCLAW_ALLOWED_ORIGINS", "https://a.example,ops.example.com", "'ops.example.com' must look like https://"),
        ("DUDUCLAW_ALLOWED_ORIGINS", "https://ops.example.com/", "without a path"),
        ("SENTRY_DSN", "nonsense", "copy it from"),
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/x", "correct DATABASE_URL"),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_line(home: Path, name: str, value: str, words: str) -> None:
    text = refusal(environment(home, **{name: value}))
    assert name in text
    assert words in text


def test_a_home_below_a_regular_file(home: Path) -> None:
    (home / "file").touch()
    text = refusal(environment(home / "file" / "state"))
    assert text.startswith("DUDUCLAW_HOME: cannot write")
    assert "point it at a directory that this user can write" in text


def test_a_port_in_use(home: Path) -> None:
    with listener() as port:
        text = refusal(environment(home, PORT=str(port)))
    assert text.startswith(f"PORT: cannot listen on 127.0.0.1:{port}")
    assert "set PORT" in text


@pytest.mark.parametrize("content", ["", "short", "é" * 64])
def test_a_damaged_secret_key(home: Path, content: str) -> None:
    (home / "secret-key").write_text(content, encoding="utf-8")
    text = refusal(environment(home))
    assert "secret-key: damaged; restore it" in text


@pytest.fixture
def company(home: Path) -> dict[str, str]:
    """A state directory after its first run, not served."""
    env = environment(home)
    manage(env, "first_run")
    return env


def findings(env: dict[str, str], level: str = "fault") -> dict[str, dict[str, str]]:
    """What `doctor --json` finds at `level`, by check. Its exit code says whether there is a fault."""
    done = manage(env, "doctor", "--json", check=False)
    found: list[dict[str, str]] = json.loads(done.stdout)
    assert done.returncode == int(any(row["level"] == "fault" for row in found))
    return {row["check"]: row for row in found if row["level"] == level}


def shell(env: dict[str, str], code: str) -> subprocess.CompletedProcess[str]:
    """Plant a fault in the database."""
    return manage(env, "shell", "--no-imports", "-c", code)


def test_doctor_finds_nothing_but_a_stopped_valkey_in_a_company_at_rest(company: dict[str, str]) -> None:
    assert list(findings(company)) == ["valkey"]
    with start_valkey(Path(company["DUDUCLAW_HOME"])):
        assert findings(company) == {}
        assert manage(company, "doctor").stdout.count("mend:") == 0


def test_doctor_names_a_dead_valkey(company: dict[str, str]) -> None:
    row = findings(company)["valkey"]
    assert "valkey.sock" in row["says"]
    assert "make run" in row["mend"]


def test_doctor_hides_the_password_of_a_broker(company: dict[str, str]) -> None:
    row = findings({**company, "REDIS_URL": "redis://:hush-hush@127.0.0.1:1/0"})["valkey"]
    assert "hush-hush" not in json.dumps(row)
    assert "unset REDIS_URL" in row["mend"]


def test_doctor_names_an_unreachable_database(company: dict[str, str]) -> None:
    row = findings({**company, "DATABASE_URL": "postgres://nobody:hush-hush@127.0.0.1:1/x"})["database"]
    assert "DATABASE_URL" in row["mend"]
    assert "hush-hush" not in json.dumps(row)


def test_doctor_names_a_database_that_is_not_migrated(home: Path) -> None:
    row = findings(environment(home))["database"]
    assert "migrations" in row["says"]
    assert row["mend"] == "python manage.py migrate"
    manage(environment(home), "migrate")
    assert "database" not in findings(environment(home))


def test_doctor_names_a_port_in_use(company: dict[str, str]) -> None:
    with listener() as port:
        row = findings({**company, "PORT": str(port)})["port"]
    assert str(port) in row["says"]
    assert "PORT" in row["mend"]


@pytest.mark.parametrize("name", ["secret-key", "first-run.json"])
def test_doctor_names_a_secret_that_others_can_read(company: dict[str, str], name: str) -> None:
    path = Path(company["DUDUCLAW_HOME"], name)
    path.chmod(0o644)
    row = findings(company)["home"]
    assert row["mend"] == f"chmod 600 {path}"


def test_doctor_names_an_open_home(company: dict[str, str]) -> None:
    Path(company["DUDUCLAW_HOME"]).chmod(0o755)
    assert findings(company)["home"]["mend"].startswith("chmod 700")


@pytest.mark.parametrize(("days", "level"), [(-1, "fault"), (6, "warning")])
def test_doctor_names_a_key_that_ends(company: dict[str, str], days: int, level: str) -> None:
    end = clock.now() + timedelta(days=days)
    shell(
        company,
        f"from agents.models import Key; Key.objects.system().filter(kind='external').update(expires_at='{end}')",
    )
    row = findings(company, level)["keys"]
    assert "external key ddc_test_" in row["says"]
    assert "keys create" in row["mend"]
    manage(company, *row["mend"].split(";")[0].removeprefix("python manage.py ").split())
    assert "keys" not in findings(company, level)


def test_doctor_names_a_clock_in_the_past(company: dict[str, str]) -> None:
    later = clock.stamp(clock.now() + timedelta(days=2))
    row = "mcp.audit.Row('security', 'w', reason='planted', timestamp='" + later + "')"
    shell(company, f"import mcp.audit; mcp.audit.insert({row})")
    assert "clock" in findings(company)["clock"]["mend"]


SEALED = "from mcp import audit, seal; [(audit.insert(audit.Row('security', 'w')), seal.seal()) for _ in 'ab']"


def test_doctor_names_a_secret_key_that_is_not_the_audits(company: dict[str, str]) -> None:
    shell(company, SEALED)
    assert "audit" not in findings(company)
    Path(company["DUDUCLAW_HOME"], "secret-key").write_text("0" * 64, encoding="ascii")
    row = findings(company)["audit"]
    assert "was not sealed with this secret key" in row["says"]
    assert "audit verify" in row["mend"]


def test_doctor_names_an_audit_whose_tail_is_gone(company: dict[str, str]) -> None:
    cut = ("DROP TRIGGER ddc_audit_mcp_auditblock_delete", "DELETE FROM mcp_auditblock WHERE last = 2")
    shell(company, f"{SEALED}; from django.db import connection as c; [c.cursor().execute(text) for text in {cut}]")
    assert "its tail is gone" in findings(company)["audit"]["says"]


def test_doctor_names_a_stalled_scheduler_and_worker(company: dict[str, str]) -> None:
    home = Path(company["DUDUCLAW_HOME"])
    with start_valkey(home), lock.hold(home / "serve.lock"):
        with valkey.client(f"unix://{valkey.socket_path(home)}?db=0") as connection:
            connection.set("ddc:pulse:scheduler", repr(clock.now().timestamp()))
            connection.set("ddc:pulse:worker", repr(clock.now().timestamp() - 3600))
        found = findings(company)
        assert list(found) == ["worker"]
        assert "silent for 36" in found["worker"]["says"]


def test_doctor_sees_that_the_port_is_its_own_servers(company: dict[str, str]) -> None:
    with lock.hold(Path(company["DUDUCLAW_HOME"], "serve.lock")), listener() as port:
        rows: dict[str, Any] = findings({**company, "PORT": str(port)}, "ok")
        assert "serves from this state directory" in rows["port"]["says"]
