"""The OpenAPI document: valid without warnings, complete, and the one that is checked in."""

from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from duduclaw.api.tests import routes
from duduclaw.api.tests.contract import PARAMETER
from duduclaw.api.views.root import document

SNAPSHOT = Path(settings.BASE_DIR, "docs", "openapi.yaml")


def test_the_snapshot_is_the_document(tmp_path: Path) -> None:
    """`manage.py spectacular --file docs/openapi.yaml` writes it anew."""
    made = tmp_path / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(made))
    assert made.read_text() == SNAPSHOT.read_text()


def test_every_route_is_described_with_its_statuses() -> None:
    paths = document()["paths"]
    known = {(path, method) for path, item in paths.items() for method in item if method in routes_methods()}
    wanted = set()
    for route in routes.every():
        path = f"/api/{route.template}"
        for converter, name in PARAMETER.items():
            path = path.replace(converter, name)
        wanted.add((path, route.method))
        responses = paths[path][route.method]["responses"]
        assert {"400", "401", "403", "429"} <= set(responses), (path, route.method)
        assert any(status.startswith("2") for status in responses)
        assert ("404" in responses) or not route.parameters, (path, route.method)
        assert paths[path][route.method]["summary"]
    assert known == wanted


def routes_methods() -> set[str]:
    """The methods that a path item may have."""
    return {"get", "post", "put", "patch", "delete"}


@pytest.mark.django_db
def test_the_document_is_open_in_both_forms() -> None:
    client = Client()
    text = client.get("/api/schema/")
    assert yaml.safe_load(text.content)["info"]["title"] == "DuDuClaw"
    assert client.get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"}).json()["openapi"]


@pytest.mark.django_db
def test_the_page_needs_no_script_and_no_foreign_address() -> None:
    page = Client().get("/api/docs/").content.decode()
    for route in routes.every():
        assert route.template.split("<")[0] in page
    assert "<script" not in page
    assert " style=" not in page
    assert "//" not in page.replace("http://testserver", "").replace("<!doctype", "")
