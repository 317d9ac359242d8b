"""The supervisor: one process tree that heals itself, ends whole, and says why it does not start."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from duduclaw.lib import valkey
from duduclaw.lib.processes import spawn
from duduclaw.tests.serving import SERVE, WATCHDOG, Serving, environment, processes_of, serving, try_to_serve
from tests.services import need, redis_server
from tests.stack import free_port, wait_until


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    """One server for the tests that leave it as they found it."""
    home = Path(tempfile.mkdtemp(prefix="ddc-serve-"))
    with serving(home) as server:
        server.wait_healthy()
        yield server
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("part", ["duduclaw.web", "duduclaw worker", "duduclaw beat", "valkey-server"])
def test_a_killed_child_is_started_again(served: Serving, part: str) -> None:
    killed = served.child(part)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)

    def replaced() -> bool:
        now = served.child(part)
        return now is not None and now != killed

    wait_until(replaced, f"a new {part}", WATCHDOG)
    served.wait_pulse()
    assert served.healthy()


def test_a_second_supervisor_on_one_home_is_refused(served: Serving) -> None:
    refused = try_to_serve({**served.env, "PORT": str(free_port())})
    assert refused.returncode == 1
    assert f"process {served.process.pid} already serves from {served.home}" in refused.stderr
    assert served.healthy()


def test_state_directory_is_for_its_owner_alone(served: Serving) -> None:
    assert served.home.stat().st_mode & 0o777 == 0o700
    for name in ("secret-key", "first-run.json", "serve.lock"):
        assert (served.home / name).stat().st_mode & 0o777 == 0o600, name
    assert (served.home / "valkey.sock").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_everything_and_running_again_resumes(home: Path, number: signal.Signals) -> None:
    for _ in range(2):
        with serving(home) as server:
            server.process.send_signal(number)
            assert server.process.wait(WATCHDOG) == 0
            assert processes_of(home) == {}


def test_a_stop_during_the_start_leaves_nothing(home: Path) -> None:
    env = environment(home)
    process = spawn(SERVE, env=env)
    wait_until((home / "valkey.sock").exists, "Valkey", WATCHDOG)
    process.terminate()
    assert process.wait(WATCHDOG) == 0
    assert processes_of(home) == {}


def test_children_do_not_outlive_a_killed_supervisor(home: Path) -> None:
    with serving(home) as server:
        assert len(processes_of(home)) >= 5
        server.process.kill()
        server.process.wait(WATCHDOG)
        wait_until(lambda: not processes_of(home), "the end of the children", WATCHDOG)


@pytest.mark.postgres
def test_postgresql_is_used_when_named(home: Path, pg_database: str) -> None:
    with serving(home, DATABASE_URL=pg_database) as served:
        served.wait_healthy()
        assert served.child("duduclaw.web") is not None
        assert not list(home.glob("*.sqlite3"))


def test_an_external_redis_is_used_when_named(home: Path) -> None:
    server, port = need("Redis", redis_server()), free_port()
    redis = spawn([server, "--port", str(port), "--save", "", "--dir", str(home), "--daemonize", "no"])
    try:
        wait_until(lambda: not valkey.fault(f"redis://127.0.0.1:{port}/0"), "Redis", WATCHDOG)
        with serving(home, REDIS_URL=f"redis://127.0.0.1:{port}/0") as served:
            served.wait_healthy()
            assert served.child("valkey-server") is None
    finally:
        redis.kill()
        redis.wait()
