"""Addresses: whether one can be listened on, and how to print one."""

import socket
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

BACKLOG = 1024  # connections that wait while a web process starts again


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `OSError`."""
    bare = host.strip("[]")
    made = socket.socket(socket.AF_INET6 if ":" in bare else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((bare, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def listen_fault(host: str, port: int) -> str:
    """Why nobody could listen there now, ready to be followed by its mend; empty when one could."""
    try:
        listen(host, port).close()
    except OSError as error:
        return f"cannot listen on {host}:{port}: {error.strerror}"
    return ""


def dialled(host: str) -> str:
    """Where a client of this machine finds what listens on `host`, without brackets."""
    bare = host.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)  # noqa: S104


def address(host: str, port: int) -> str:
    """`host:port` for a link."""
    bare = dialled(host)
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def answers(host: str, port: int) -> bool:
    """Whether an HTTP server speaks there, seen from this machine."""
    connection = HTTPConnection(dialled(host), port, timeout=1)
    try:
        connection.request("HEAD", "/readyz")
        connection.getresponse()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return True


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)
