"""The product's settings for tests: a throwaway state directory, a fast hasher, one database per test process."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

if "DUDUCLAW_TEST_HOME" not in os.environ:
    root = os.environ.get("DUDUCLAW_HOME") or tempfile.mkdtemp(prefix="ddc-test-")
    if "DUDUCLAW_HOME" not in os.environ:
        atexit.register(shutil.rmtree, root, ignore_errors=True)
    os.environ["DUDUCLAW_TEST_HOME"] = root
os.environ["DUDUCLAW_HOME"] = str(
    Path(os.environ["DUDUCLAW_TEST_HOME"], os.environ.get("PYTEST_XDIST_WORKER", "main")).absolute()
)
if "DUDUCLAW_TEST_DATABASE_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["DUDUCLAW_TEST_DATABASE_URL"]
os.environ.setdefault("DUDUCLAW_KEY_ENVIRONMENT", "test")

from duduclaw.settings import *

TESTING = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if ON_SQLITE:
    # A file, not memory: worker threads meet in the real locking of SQLite.
    DATABASES["default"]["TEST"] = {"NAME": str(HOME / "test.sqlite3")}
    DATABASES["default"]["OPTIONS"]["init_command"] = (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA foreign_keys=ON;"
    )
else:
    DATABASES["default"]["TEST"] = {"NAME": f"ddc_{os.getppid()}"}
