"""Who asks over REST, and what kind of caller a route takes. A key is proved by principals, a person by session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from agents.actions import roles
from agents.models import Role
from agents.principals import BadKey, who_for_key, who_for_user
from duduclaw.adminsite import resolve
from duduclaw.lib import clock
from duduclaw.lib.rate import Bucket, Limiter
from mcp.policy import Who

STRANGERS = Bucket(60)  # requests a minute and address without a good key
strangers = Limiter({"http": STRANGERS})


@dataclass(frozen=True, slots=True)
class Caller:
    """`request.user`: the principal, and how to prove it anew in the transaction of a write."""

    who: Who
    prove: Callable[[], Who]
    is_authenticated: bool = True

    @property
    def pk(self) -> int | None:
        """The account of a person, as sessions know it; none for a key."""
        return self.who.user


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer ddc_...`. A header of another kind is refused, never ignored."""

    def authenticate(self, request: Request) -> tuple[Caller, Who] | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, token = header.partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise BadKey("missing")
            who = who_for_key(token.strip())
        except BadKey as error:
            slow_down(request)
            raise AuthenticationFailed(f"the key is not good: {error.reason}", "invalid_key") from None
        return Caller(who, lambda: who_for_key(token.strip())), who

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class PersonAuthentication(SessionAuthentication):
    """A signed-in person with a membership. Every write needs the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Caller, Who] | None:
        django_request: Any = request._request
        user = getattr(django_request, "user", None)
        if user is None or not user.is_active:
            return None
        self.enforce_csrf(request)
        who = resolve(django_request)
        if who is None:
            raise PermissionDenied("you are in no workspace", "no_membership")
        return Caller(who, lambda: proved(user, who.workspace)), who

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except PermissionDenied as error:
            raise PermissionDenied(str(error.detail), "csrf_failed") from None


def proved(user: Any, workspace: str) -> Who:
    """The person as of now. Raises when the membership is gone meanwhile."""
    who = who_for_user(user, workspace)
    if who is None:
        raise PermissionDenied("you are in no workspace", "no_membership")
    return who


def slow_down(request: Request) -> None:
    """Take a token of the address that has no good key; raises 429 when there is none left."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    wait = strangers.check(address, "http", clock.now().timestamp())
    if wait is not None:
        raise Throttled(wait=wait)


class IsOperator(BasePermission):
    """Operator keys and people; a viewer reads. A view names the role that its writes need, or opens to all keys."""

    def has_permission(self, request: Request, view: Any) -> bool:
        who = request.auth
        if not isinstance(who, Who):
            slow_down(request)
            return False
        if getattr(view, "open_to_keys", False):
            return True
        if not who.is_human:
            raise PermissionDenied("this is for people and operator keys", "operators_only")
        wanted: Role = getattr(view, "write_role", Role.OPERATOR)
        if request.method not in SAFE_METHODS and not roles.has(who, wanted):
            raise PermissionDenied(f"this needs the role {wanted.value} or a higher one", "insufficient_role")
        return True
