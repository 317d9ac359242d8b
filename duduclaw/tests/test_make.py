"""The first minute on a foreign machine: what is missing is named in one line, with its Debian package."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.services import ROOT

OLD = "#!/bin/sh\nexit 1\n"
NO_ENSUREPIP = """#!/bin/sh
case "$2" in
  *ensurepip*) exit 1;;
  *print*) echo 3.11;;
esac
"""


def make_environment(directory: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a PATH on which every Python is the given one."""
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (directory / name).write_text(python, encoding="utf-8")
        (directory / name).chmod(0o755)
    bash = shutil.which("bash")
    assert bash
    script = [bash, str(ROOT / "scripts" / "venv.sh"), str(directory / "made")]
    return subprocess.run(script, env={"PATH": str(directory)}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("python", "package"), [(OLD, "python3.11-venv"), (NO_ENSUREPIP, "python3-venv")])
def test_a_missing_prerequisite_is_one_line_and_exit_2(home: Path, python: str, package: str) -> None:
    done = make_environment(home, python)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert package in done.stderr
    assert not (home / "made").exists()


def test_help_lists_every_verb() -> None:
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    verbs = {line.split()[0] for line in said.splitlines()}
    assert verbs >= {"run", "test", "check", "setup", "lock", "demo", "cases", "help"}


def test_locked_requirements_name_no_index() -> None:
    for name in ("requirements", "requirements-dev", "requirements-sdk"):
        text = (ROOT / f"{name}.txt").read_text(encoding="utf-8")
        assert "://" not in text, name
        assert text.count("--hash=sha256:") > 100, name
    assert "resolved" not in (ROOT / "tests" / "clients" / "package-lock.json").read_text(encoding="utf-8")


def test_ci_runs_checks_and_the_readmes_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make check" in script
    assert script.rstrip().endswith("make test")
    assert "    make test\n" in (ROOT / "README.md").read_text(encoding="utf-8")
