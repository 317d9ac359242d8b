"""Settings of the workspace, the fleet stop, and the record."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions import fleet, policy
from agents.actions.fields import choice
from agents.models import PlatformSettings, Role
from duduclaw.api.docs import documented
from duduclaw.api.resource import Resource, read, take_version
from duduclaw.api.serializers.house import (
    AuditSerializer,
    ReleaseDraft,
    SettingsPatch,
    SettingsSerializer,
    StopDraft,
    StopReport,
)
from duduclaw.api.views.access import moment
from duduclaw.api.views.board import text
from duduclaw.lib import clock
from mcp import audit
from mcp.models import AuditRow


class Settings(Resource):
    """The workspace's settings."""

    serializer_class = SettingsSerializer
    write_role = Role.ADMIN

    @documented("Read the settings.", SettingsSerializer)
    def get(self, request: Request) -> Response:
        row = PlatformSettings.objects.for_who(self.who).first() or PlatformSettings(workspace_id=self.who.workspace)
        return Response(self.get_serializer(row).data)

    @documented(
        "Change sections: objects merge per key, lists are replaced whole.",
        SettingsSerializer,
        body=SettingsPatch,
        also=(409,),
    )
    def patch(self, request: Request) -> Response:
        changes = self.body
        version = take_version(changes)
        row = self.changed(
            lambda: policy.update_settings(by=self.who, changes=changes, version=version), changes=changes
        )
        return Response(self.get_serializer(row).data)


class Stop(Resource):
    """Everything, a department or an agent."""

    serializer_class = StopReport
    event = "fleet_stopped"

    @documented("Stop work at once; calls are refused until the stop is released.", StopReport, body=StopDraft,
                also=(404,))  # fmt: skip
    def post(self, request: Request) -> Response:
        given = read(self.body, {"scope": text(80), "reason": text(fleet.REASON)}, "scope", "reason")
        return Response(self.changed(lambda: fleet.stop(by=self.who, **given), **given))


class Release(Resource):
    """The stop of exactly that scope."""

    serializer_class = StopReport
    event = "fleet_released"

    @documented("Release a stop; wider and narrower ones stay.", StopReport, body=ReleaseDraft, also=(409,))
    def post(self, request: Request) -> Response:
        given = read(self.body, {"scope": text(80), "reason": text(fleet.REASON)}, "scope")
        return Response(self.changed(lambda: fleet.release(by=self.who, scope=given["scope"]), **given))


class Audit(Resource):
    """The record of the workspace. Read-only."""

    serializer_class = AuditSerializer

    @documented(
        "List the record, newest first: one row a call, and with stream=security the events.",
        AuditSerializer(many=True),
        query={
            "agent": "Only rows of this actor.",
            "tool": "Only rows of this tool.",
            "outcome": "ok, denied, invalid, error or cancelled.",
            "since": "Only rows of this RFC 3339 time or later.",
            "stream": "tool_calls (when absent) or security.",
        },
        also=(400,),
    )
    def get(self, request: Request) -> Response:
        wanted = self.filters("agent", "tool", "outcome", "since", "stream")
        return self.page(rows(self.who.workspace, wanted))


def rows(workspace: str, wanted: dict[str, str]) -> QuerySet[Any]:
    """The rows of one workspace that have the wanted values."""
    stream = choice(audit.CALLS, audit.SECURITY)("stream", wanted.pop("stream", audit.CALLS), None)
    since = wanted.pop("since", None)
    if "outcome" in wanted:
        choice(audit.OK, audit.DENIED, audit.INVALID, audit.ERROR, audit.CANCELLED)("outcome", wanted["outcome"], None)
    found = AuditRow.objects.filter(workspace=workspace, stream=stream, **wanted)
    return found.filter(timestamp__gte=clock.stamp(moment("since", since))) if since else found
