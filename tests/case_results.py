"""Keeps the outcome of every test that carries a case id, and holds a full run to `tests/cases.txt`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases.txt"
RESULTS = HERE.parent / ".pytest_cache" / "cases.json"
ID = re.compile(r"(?<![A-Za-z0-9])([A-Z]\d{2})(?![0-9A-Za-z])")
EVERYDAY = "not long and not chaos"  # the marks of pyproject.toml's addopts
NARROWING = ("keyword", "lf", "deselect", "ignore", "ignore_glob", "collectonly", "maxfail")
RANK = ("passed", "skipped", "failed")


def due() -> dict[str, bool]:
    """Every case id, and whether a passing test of it is due by now."""
    lines = [line.split() for line in CASES.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {name: state == "due" for name, state in lines}


def ids_of(nodeid: str) -> list[str]:
    """The case ids in a test's own name: `test_K01_one_winner[sqlite]` carries K01."""
    return ID.findall(nodeid.split("::", 1)[-1].replace("_", " "))


def stored() -> dict[str, str]:
    """Test -> outcome, as the last runs left them."""
    results: dict[str, str] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return results


def best(results: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Case id -> its result and file: failed when one of its tests failed, else passed when one passed."""
    found: dict[str, tuple[str, str]] = {}
    for nodeid, outcome in sorted(results.items()):
        for name in ids_of(nodeid):
            before = found.get(name, ("", ""))[0]
            if not before or outcome == "failed" or (outcome == "passed" and before == "skipped"):
                found[name] = (outcome, nodeid.split("::", 1)[0])
    return found


def unmet(results: dict[str, str]) -> list[str]:
    """The due ids without a passing test."""
    found = best(results)
    return [name for name, is_due in due().items() if is_due and found.get(name, ("", ""))[0] != "passed"]


class Recorder:
    """Lives in the process that hears of every test: the controller under xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.results: dict[str, str] = {}
        self.full = (
            config.args_source is not pytest.Config.ArgsSource.ARGS
            and config.option.markexpr == EVERYDAY
            and not any(getattr(config.option, name, None) for name in NARROWING)
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst phase of a test counts."""
        if not ids_of(report.nodeid) or (report.when != "call" and report.passed):
            return
        worst = max(self.results.get(report.nodeid, "passed"), report.outcome, key=RANK.index)
        self.results[report.nodeid] = worst

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A full run replaces what is kept, a narrowed one adds to it; a due case without a test fails a full run."""
        kept = self.results if self.full else {**stored(), **self.results}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
        if self.full and session.exitstatus == pytest.ExitCode.OK and unmet(self.results):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Name them before the last line."""
        if self.full and (names := unmet(self.results)):
            terminalreporter.section("due cases without a passing test")
            terminalreporter.line(" ".join(names))
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Workers report to the controller, which keeps the record."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config))
