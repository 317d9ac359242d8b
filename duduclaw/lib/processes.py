"""Child processes in groups of their own that do not outlive their parent (Linux; elsewhere only the groups)."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    on_parent_death: signal.Signals = signal.SIGTERM,
    **popen: Any,
) -> subprocess.Popen[bytes]:
    """Start `argv` as leader of its own group; it gets `on_parent_death` when this process dies."""
    return subprocess.Popen(
        [str(part) for part in argv],
        env=env,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(_prepare_child, os.getpid(), int(on_parent_death)),
        **popen,
    )


def _prepare_child(parent: int, death_signal: int) -> None:
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        os.kill(os.getpid(), death_signal)


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send to the child and all that it started, dead leader or not."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def end(process: subprocess.Popen[bytes], patience: float) -> int:
    """SIGTERM, up to `patience` seconds, then SIGKILL for what is left of the group. Answers the exit code."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience)
    signal_group(process, signal.SIGKILL)
    return process.wait()
