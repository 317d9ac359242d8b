"""How views are described in the OpenAPI document: one answer, and the errors that the route can give."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from duduclaw.api.serializers.common import Refusal

WORDS = {
    400: "An argument is missing, unknown or not valid; the detail names it.",
    401: "No key and no session, or one that is no longer good.",
    403: "The caller's kind, role, scope or relation does not allow it.",
    404: "No such object in this workspace.",
    409: "It was changed, decided or ended meanwhile.",
    413: "The body has more than 1 MiB.",
    415: "The body is not JSON.",
    422: "A rule of the platform refuses it; the code says which.",
    429: "Too many requests; Retry-After says when.",
    500: "A fault here; the log has more.",
}
READ, WRITE = (400, 401, 403, 429), (400, 401, 403, 413, 415, 429)


class KeyScheme(OpenApiAuthenticationExtension):
    """`Authorization: Bearer ddc_...`."""

    target_class = "duduclaw.api.auth.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An operator key; other kinds for tools only."}


class SessionScheme(OpenApiAuthenticationExtension):
    """A signed-in person; writes need the CSRF token."""

    target_class = "duduclaw.api.auth.PersonAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        words = "A signed-in person. Writes carry X-CSRFToken; deciding and making keys need a fresh password."
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": words}


def documented(
    says: str,
    answer: Any = None,
    *,
    status: int = 200,
    body: type[serializers.Serializer[Any]] | OpenApiTypes | None = None,
    query: dict[str, str] | None = None,
    also: tuple[int, ...] = (),
    **more: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Describe a handler: what it does, its answer and status, its body, its query parameters, its errors."""
    errors = {code: OpenApiResponse(Refusal, WORDS[code]) for code in {*(WRITE if body else READ), *also}}
    return extend_schema(
        summary=says,
        request=body,
        responses={status: answer, **more.pop("answers", {}), **errors},
        parameters=[OpenApiParameter(name, str, description=words) for name, words in (query or {}).items()],
        **more,
    )
