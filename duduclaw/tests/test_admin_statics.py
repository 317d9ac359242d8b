"""Static files: read whole, in part, not at all, and no further than their directory."""

import pytest
from django.test import Client

CSS = "/static/css/tokens.css"


def test_a_file_is_served_whole_and_kept_by_its_date(client: Client) -> None:
    whole = client.get(CSS)
    assert whole.headers["Content-Type"].startswith("text/css")
    assert b"--accent" in whole.content
    again = client.get(CSS, headers={"If-Modified-Since": whole.headers["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_part_and_the_head(client: Client) -> None:
    part = client.get(CSS, headers={"Range": "bytes=0-9"})
    assert (part.status_code, len(part.content)) == (206, 10)
    head = client.head(CSS)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("path", ["/static/../manage.py", "/static/css/../../manage.py", "/static/nothing.css"])
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404
