"""A WebSocket client that reads only when it is told to, over a socket with a small buffer."""

import json
import socket
from base64 import b64encode
from typing import Any


class Deaf:
    """A client that sends and does not read until it is told to."""

    def __init__(self, url: str, token: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((host, int(port)))
        lines = [
            "GET /ws/mcp/ HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {b64encode(bytes(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {token}",
        ]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def send(self, body: dict[str, Any]) -> None:
        """A short masked text frame."""
        data = json.dumps(body).encode()
        assert len(data) < 126
        self.socket.sendall(bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data)

    def read(self) -> dict[str, Any]:
        """The next text frame."""
        head = self.file.read(2)
        if len(head) < 2:
            raise EOFError
        size = head[1]
        if size > 125:
            size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
        data = self.file.read(size)
        return self.read() if head[0] != 0x81 else json.loads(data)

    def close(self) -> None:
        """Leave."""
        self.file.close()
        self.socket.close()
