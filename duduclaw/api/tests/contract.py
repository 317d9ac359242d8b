"""Every answer of a test against the OpenAPI document: the status is documented, the body has the shape."""

from functools import cache
from typing import Any

from django.urls import resolve
from jsonschema import Draft202012Validator

from duduclaw.api.views.root import document

PARAMETER = {"<str:name>": "{name}", "<str:ident>": "{ident}", "<str:ref>": "{ref}"}


def template(path: str) -> str:
    """`/api/v1/agents/{name}/` for the path of one agent."""
    route = f"/{resolve(path.split('?')[0]).route}"
    for converter, name in PARAMETER.items():
        route = route.replace(converter, name)
    return route


def plain(schema: Any) -> Any:
    """OpenAPI 3.0 as JSON Schema: references resolved, `nullable` spelled out."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return plain(document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    made = {key: plain(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made


@cache
def validators(method: str, route: str) -> dict[int, Draft202012Validator]:
    """Status -> the check of its body, for one operation."""
    responses = document()["paths"][route][method]["responses"]
    shapes = {int(status): answer.get("content", {}) for status, answer in responses.items()}
    return {
        status: Draft202012Validator(plain(content.get("application/json", {}).get("schema", {})))
        for status, content in shapes.items()
    }


def check(method: str, path: str, response: Any) -> None:
    """Raise when the answer is not in the document."""
    if response.status_code == 405:
        return
    known = validators(method.lower(), template(path))
    assert response.status_code in known, f"{method} {path}: {response.status_code} is not documented"
    fault = next(known[response.status_code].iter_errors(response.json()), None)
    assert fault is None, f"{method} {path}: {fault.message if fault else ''}"
