"""SQLite with one write lock a process and a busy retry that never sleeps long.

Django opens a transaction with BEGIN IMMEDIATE (see settings). Threads of one process queue on a
lock instead of meeting in SQLite's busy handler, whose sleeps grow to 100 ms (docs/decisions/0004).
"""

import random
import sqlite3
import threading
import time
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

WRITE_LOCK = threading.Lock()
PATIENCE = 20.0  # seconds


class DatabaseWrapper(base.DatabaseWrapper):
    """The stock backend, except for how a transaction begins and ends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._holds_lock = False

    def _start_transaction_under_autocommit(self) -> None:
        deadline = time.monotonic() + PATIENCE
        if not WRITE_LOCK.acquire(timeout=PATIENCE):
            raise OperationalError("database is locked: a write transaction of this process is stuck")
        self._holds_lock = True
        try:
            self._begin_immediate(deadline)
        except BaseException:
            self._release()
            raise

    def _begin_immediate(self, deadline: float) -> None:
        raw = self.connection
        raw.execute("PRAGMA busy_timeout=0")
        try:
            while True:
                try:
                    raw.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise OperationalError(*error.args) from error
                    pause(random.uniform(0.001, 0.005))  # noqa: S311
        finally:
            raw.execute(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}")

    def _release(self) -> None:
        if self._holds_lock:
            self._holds_lock = False
            WRITE_LOCK.release()

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]
        finally:
            self._release_when_done()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._release_when_done()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._release()

    def _release_when_done(self) -> None:
        if self.connection is None or not self.connection.in_transaction:
            self._release()


def pause(seconds: float) -> None:
    """Wait for another process to commit (kept apart so that tests can count the waits)."""
    threading.Event().wait(seconds)
