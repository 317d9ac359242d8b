"""Addresses: whether one can be listened on, and how to print one."""

import socket
from urllib.parse import urlsplit


def listen_fault(host: str, port: int) -> str:
    """Why nobody could listen there now, ready to be followed by its mend; empty when one could."""
    bare = host.strip("[]")
    try:
        with socket.socket(socket.AF_INET6 if ":" in bare else socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((bare, port))
            probe.listen()
    except OSError as error:
        return f"cannot listen on {host}:{port}: {error.strerror}"
    return ""


def connects(host: str, port: int) -> bool:
    """Whether somebody listens there, seen from this machine."""
    bare = host.strip("[]")
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)  # noqa: S104
    try:
        socket.create_connection((target, port), timeout=1).close()
    except OSError:
        return False
    return True


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)
