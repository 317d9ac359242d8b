"""The supervisor's parts: back-off, whole groups, one lock."""

import subprocess
import sys
from pathlib import Path

import pytest

from duduclaw.lib import lock
from duduclaw.lib.processes import end, spawn
from duduclaw.lib.supervisor import HEALTHY_AFTER, LONGEST_DELAY, Service, stop_together
from tests.stack import wait_until

FAILS = [sys.executable, "-c", "raise SystemExit(3)"]
SLEEPS = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.sigwait([])",
]


def die(service: Service) -> None:
    """Wait until the child has ended."""
    assert service.process is not None
    service.process.wait(60)


def test_a_child_that_keeps_dying_is_started_ever_later() -> None:
    service, now, delays = Service("x", FAILS, 1.0), 0.0, []
    service.start(now)
    for _ in range(9):
        die(service)
        service.tend(now)
        assert service.process is None
        delays.append(service.due_at - now)
        service.tend(service.due_at - 0.01)
        assert service.process is None
        now = service.due_at
        service.tend(now)
        assert service.process is not None
    die(service)
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY]


def test_a_minute_of_health_forgives() -> None:
    service = Service("x", FAILS, 1.0, failures=5)
    service.start(0.0)
    die(service)
    service.tend(HEALTHY_AFTER)
    assert service.due_at == HEALTHY_AFTER + 0.5


@pytest.mark.parametrize("child", [SLEEPS, STUBBORN])
def test_an_end_takes_the_whole_group(child: list[str]) -> None:
    parent = f"import subprocess as s; p = s.Popen({child!r}, stdout=s.DEVNULL); print(p.pid, flush=True); p.wait()"
    process = spawn([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    end(process, 0.2)
    process.stdout.close()
    wait_until(lambda: not lives(grandchild), "the end of the child's child")


def lives(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_children_that_stop_together_are_all_asked_first() -> None:
    services = [Service(str(number), SLEEPS, 60.0) for number in range(3)]
    for service in services:
        service.start(0.0)
    stop_together(services)
    assert all(service.process and service.process.returncode is not None for service in services)


def test_one_holder_at_a_time(home: Path) -> None:
    path = home / "lock"
    code = f"from duduclaw.lib.lock import hold\nwith hold('{path}') as held: print(held)"
    with lock.hold(path) as nobody:
        assert nobody is None
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert other.stdout.strip() == path.read_text(encoding="ascii").strip()
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "None"
