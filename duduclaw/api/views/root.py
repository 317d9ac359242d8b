"""The OpenAPI document, its page, and what answers where nothing is."""

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from duduclaw.api.resource import Resource

METHODS = ("get", "post", "patch", "delete")


@cache
def document() -> dict[str, Any]:
    """The whole OpenAPI document, made once a process."""
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return made


@extend_schema(exclude=True)
class Schema(SpectacularAPIView):
    """The OpenAPI document; open to everybody, it says nothing about anybody."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(document(), headers={"Content-Disposition": 'inline; filename="openapi.yaml"'})


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The document as a page without scripts."""
    schema = document()
    operations = [
        {**item[method], "method": method.upper(), "path": path, "fields": fields(schema, item[method])}
        for path, item in schema["paths"].items()
        for method in METHODS
        if method in item
    ]
    return render(request, "api/docs.html", {"info": schema["info"], "operations": operations})


def fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of an operation's body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    shape = component(schema, content.get("schema", {}))
    return [
        {
            "name": name,
            "required": name in shape.get("required", []),
            "type": "object" if "allOf" in member or "$ref" in member else member.get("type", "any"),
            "description": member.get("description", ""),
        }
        for name, member in shape.get("properties", {}).items()
    ]


def component(schema: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """The shape itself where only its name is given."""
    if "$ref" not in shape:
        return shape
    found: dict[str, Any] = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    return found


@extend_schema(exclude=True)
class Absent(Resource):
    """Every other address: the same one with its last slash, or 404."""

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Serve `agents` as `agents/`; a redirect would lose a body."""
        if not request.path.endswith("/"):
            match = with_slash(request.path)
            if match is not None:
                request.resolver_match = match
                return match.func(request, *match.args, **match.kwargs)
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise NotFound

    post = put = patch = delete = get


def with_slash(path: str) -> Any:
    """The view of the address with a slash at its end, or None."""
    try:
        match = resolve(f"{path}/")
    except Resolver404:
        return None
    return None if match.url_name == "absent" else match
