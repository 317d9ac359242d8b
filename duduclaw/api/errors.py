"""One shape for every error: `{"error": code, "detail": text}`. The statuses of business refusals stand here."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from agents.principals import BadKey
from mcp.errors import GateRefused, InvalidArguments, Refused

log = logging.getLogger(__name__)
NOT_FOUND = {"error": "not_found", "detail": "no such object"}
CONFLICTS = frozenset(
    {"already_claimed", "already_decided", "stale", "claim_lost", "already_revoked", "expired", "name_taken",
     "not_stopped", "approval_used"}
)  # fmt: skip
RELATIONS = frozenset(
    {"delegation_denied", "org_placement_denied", "caller_unknown", "owner_unknown", "system_sender_identity",
     "insufficient_role", "human_only", "own_request", "not_author", "not_yours", "assigned_to_other",
     "not_the_holder"}
)  # fmt: skip


def status_of(code: str) -> int:
    """The HTTP status of a `Refused` by its class."""
    if code in CONFLICTS:
        return 409
    if code in RELATIONS:
        return 403
    return 404 if code == "not_found" else 422


def body(error: str, detail: str) -> dict[str, str]:
    """The answer of every error."""
    return {"error": error, "detail": detail}


def handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's hook: any exception of a view as an answer. What is unforeseen is logged and says nothing."""
    if isinstance(error, Refused):
        status = status_of(error.code)
        return Response(dict(NOT_FOUND) if status == 404 else body(error.code, error.detail), status)
    if isinstance(error, InvalidArguments):
        return Response(body("invalid_arguments", error.message), 400)
    if isinstance(error, GateRefused):
        return Response(body(error.error, error.text), 403)
    if isinstance(error, Http404 | exceptions.NotFound):
        return Response(dict(NOT_FOUND), 404)
    if isinstance(error, BadKey):
        return Response(body("invalid_key", f"the key is not good: {error.reason}"), 401)
    if isinstance(error, DjangoDenied):
        return Response(body("permission_denied", "this is not allowed"), 403)
    if isinstance(error, exceptions.APIException):
        return api_error(error)
    log.error("REST request failed", exc_info=error)
    return Response(body("internal", "something failed here; the log has more"), 500)


def api_error(error: exceptions.APIException) -> Response:
    """DRF's own errors, with their headers."""
    headers: dict[str, str] = {}
    if isinstance(error, exceptions.Throttled):
        headers["Retry-After"] = str(max(1, int(getattr(error, "wait", None) or 1)))
        return Response(body("rate_limited", "too many requests; try again later"), 429, headers=headers)
    if (challenge := getattr(error, "auth_header", None)) is not None:
        headers["WWW-Authenticate"] = challenge
    codes = error.get_codes()
    code = codes if isinstance(codes, str) else "invalid_arguments"
    detail = str(error.detail) if isinstance(codes, str) else "the arguments are not valid"
    return Response(body(code, detail), error.status_code, headers=headers)


REFUSALS = frozenset({403, 404, 409, 422})  # what the record keeps of a known caller's write
