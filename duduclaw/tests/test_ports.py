"""Addresses as people and clients use them."""

import socket

import pytest

from duduclaw.lib import ports


@pytest.mark.parametrize(
    ("host", "link"),
    [
        ("127.0.0.1", "127.0.0.1:8000"),
        ("0.0.0.0", "127.0.0.1:8000"),
        ("::", "[::1]:8000"),
        ("[::1]", "[::1]:8000"),
        ("ops.example.com", "ops.example.com:8000"),
    ],
)
def test_a_link_can_be_dialled(host: str, link: str) -> None:
    assert ports.address(host, 8000) == link


def test_a_taken_port_says_why_and_a_free_one_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in ports.listen_fault("127.0.0.1", port)
        assert not ports.answers("127.0.0.1", port)
    assert ports.listen_fault("127.0.0.1", port) == ""


def test_a_password_is_not_shown() -> None:
    assert ports.without_password("redis://user:hush@host:6379/0") == "redis://user:***@host:6379/0"
    assert ports.without_password("unix:///run/v.sock?db=0") == "unix:///run/v.sock?db=0"
