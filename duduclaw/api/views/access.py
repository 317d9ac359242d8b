"""Keys, grants and approvals."""

from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions import approvals
from agents.actions.fields import choice, entries, fault, line
from agents.actions.grants import revoke_grant
from agents.actions.keys import create_key, revoke_key
from agents.models import Agent, Approval, Grant, Key, Role
from duduclaw import stepup
from duduclaw.api.docs import documented
from duduclaw.api.resource import Resource, read
from duduclaw.api.serializers.access import (
    ApprovalSerializer,
    Decision,
    GrantSerializer,
    KeyDraft,
    KeySerializer,
    NewKey,
)
from duduclaw.lib import clock


def moment(where: str, value: Any, stored: Any = None) -> datetime:
    """An RFC 3339 instant with its offset."""
    try:
        found = datetime.fromisoformat(value)
        if found.tzinfo is None:
            raise fault(where, "must have an offset or Z")
        return found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise fault(where, "must be an RFC 3339 time") from None


NEW_KEY = {
    "kind": choice(*Key.Kind.values),
    "agent": line(64),
    "scopes": entries(50, 64),
    "role": choice(*Role.values),
    "client_id": line(64),
    "label": line(120),
    "expires_at": moment,
}


def stepped_up(view: Resource) -> None:
    """A browser session gives the password again before it decides or makes keys; a key is its own proof."""
    if view.who.kind == "person" and not stepup.fresh(view.request._request):
        raise PermissionDenied("give your password again first, at /admin/step-up/", "step_up_required")


class Keys(Resource):
    """All keys of the workspace, without their secrets."""

    serializer_class = KeySerializer
    write_role = Role.ADMIN
    event = "key_created"

    @documented("List keys, newest first.", KeySerializer(many=True), query={"agent": "Only keys of this agent."})
    def get(self, request: Request) -> Response:
        return self.page(self.of_agent(Key.objects.for_who(self.who)))

    @documented("Make a key; it is shown this once.", NewKey, status=201, body=KeyDraft)
    def post(self, request: Request) -> Response:
        stepped_up(self)
        given = read(self.body, NEW_KEY, "kind")
        agent = None
        if name := given.pop("agent", ""):
            agent = Agent.objects.for_who(self.who).living().filter(name=name).first()
            if agent is None:
                raise fault("agent", "no such agent")
        scopes = given.pop("scopes", None)
        key, token = self.changed(
            lambda: create_key(by=self.who, agent=agent, scopes_held=scopes, **given), kind=given["kind"]
        )
        shown = {"id": key.id, "key": token, "prefix": key.prefix, "expires_at": clock.stamp(key.expires_at)}
        return Response(shown, status=201)


class OneKey(Resource):
    """One key."""

    serializer_class = KeySerializer
    write_role = Role.ADMIN
    event = "key_revoked"

    def find(self, ident: str) -> Key:
        """The key of that id."""
        found: Key = self.one(Key.objects.for_who(self.who).filter(pk=ident).select_related("agent"))
        return found

    @documented("Read a key without its secret.", KeySerializer, also=(404,))
    def get(self, request: Request, ident: str) -> Response:
        return Response(self.get_serializer(self.find(ident)).data)

    @documented("Revoke a key.", KeySerializer, also=(404, 409))
    def delete(self, request: Request, ident: str) -> Response:
        row = self.find(ident)
        return Response(self.get_serializer(self.changed(lambda: revoke_key(row, by=self.who))).data)


class Grants(Resource):
    """All grants of the workspace."""

    serializer_class = GrantSerializer

    @documented(
        "List grants, newest first.",
        GrantSerializer(many=True),
        query={"agent": "Only grants of this agent.", "active": "true: only those that open something now."},
    )
    def get(self, request: Request) -> Response:
        rows = self.of_agent(Grant.objects.for_who(self.who))
        return self.page(rows.active(clock.now()) if self.filters("active") == {"active": "true"} else rows)


class OneGrant(Resource):
    """One grant."""

    serializer_class = GrantSerializer

    @documented("Read a grant.", GrantSerializer, also=(404,))
    def get(self, request: Request, ident: str) -> Response:
        row = self.one(Grant.objects.for_who(self.who).filter(pk=ident).select_related("agent"))
        return Response(self.get_serializer(row).data)


class RevokeGrant(Resource):
    """One grant."""

    serializer_class = GrantSerializer
    event = "grant_revoked"

    @documented("Take a grant back now.", GrantSerializer, also=(404, 409))
    def post(self, request: Request, ident: str) -> Response:
        row = self.one(Grant.objects.for_who(self.who).filter(pk=ident).select_related("agent"))
        return Response(self.get_serializer(self.changed(lambda: revoke_grant(row, by=self.who))).data)


class Approvals(Resource):
    """All questions of the workspace."""

    serializer_class = ApprovalSerializer

    @documented(
        "List approvals, newest first.",
        ApprovalSerializer(many=True),
        query={"status": "pending, approved, denied, expired or void, as of now.", "agent": "Only of this agent."},
    )
    def get(self, request: Request) -> Response:
        rows, wanted = self.of_agent(Approval.objects.for_who(self.who)), self.filters("status")
        if "status" in wanted:
            rows = rows.filter(reads_as(choice(*Approval.Status.values)("status", wanted["status"], None)))
        return self.page(rows, lambda found: [approvals.shown(row) for row in found])


def reads_as(status: str) -> Q:
    """The rows whose status reads so now: what is past its end has expired."""
    lapsed = approvals.lapsed(clock.now())
    if status == Approval.Status.EXPIRED:
        return Q(status=status) | lapsed
    return Q(status=status) & ~lapsed


class OneApproval(Resource):
    """One question."""

    serializer_class = ApprovalSerializer

    @documented("Read an approval.", ApprovalSerializer, also=(404,))
    def get(self, request: Request, ident: str) -> Response:
        rows = Approval.objects.for_who(self.who).filter(pk=ident).select_related("agent")
        return Response(approvals.shown(self.one(rows)))


class Decide(Resource):
    """A person's answer."""

    serializer_class = ApprovalSerializer
    event = "approval_decided"

    @documented("Approve or deny; approving a capability mints its grant.", ApprovalSerializer, body=Decision,
                also=(404, 409, 422))  # fmt: skip
    def post(self, request: Request, ident: str) -> Response:
        stepped_up(self)
        row = self.one(Approval.objects.for_who(self.who).filter(pk=ident).select_related("agent"))
        given = read(self.body, {"decision": line(16), "note": line(300)}, "decision")
        done = self.changed(lambda: approvals.decide(row, by=self.who, **given), **given)
        return Response(approvals.shown(done))
