"""People of a workspace: an account and its membership in one step."""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from agents.actions import policy, roles
from agents.models import Membership, Role
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who


def add_person(*, by: Who, username: str, password: str, role: str) -> Membership:
    """A new account with a role in the caller's workspace. Needs the role admin.

    Raises `InvalidArguments` naming the field, `Refused` `name_taken`.
    """
    roles.need(by, Role.ADMIN, "adding a person")
    if role not in Role.values:
        raise InvalidArguments(f"role: must be one of {', '.join(Role.values)}", "role")
    made = User(username=username)
    checked("username", lambda: User.username_validator(username))
    checked("password", lambda: validate_password(password, made))
    with transaction.atomic():
        policy.lock(by)
        if User.objects.filter(username__iexact=username).exists():
            raise Refused("name_taken", "this name is taken; choose another one")
        made.set_password(password)
        made.save()
        row = policy.set_role(made, by=by, role=role)
    if row is None:
        raise Refused("not_found", "the membership was not made")
    return row


def checked(field: str, check: Callable[[], None]) -> None:
    """Run one of Django's own checks; its fault names the field."""
    try:
        check()
    except ValidationError as error:
        raise InvalidArguments(" ".join(error.messages), field) from error
