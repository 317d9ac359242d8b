"""Issues, their comments, and the wakes that assignments queue."""

from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions.fields import refuse_unknown
from agents.actions.policy import refuse_stale
from duduclaw.api.docs import documented
from duduclaw.api.resource import Resource, read, take_version
from duduclaw.api.serializers.board import (
    CommentDraft,
    CommentSerializer,
    IssueDraft,
    IssueLine,
    IssuePatch,
    IssueSerializer,
    WakeSerializer,
)
from duduclaw.api.views.board import text
from mcp.policy import Who
from tasks.actions import issues
from tasks.issue_render import comment_card, issue_card, issue_line
from tasks.models import Comment, Issue, Wake

DRAFT = {name: text(issues.LONGEST_TEXT) for name in ("title", "description", "priority", "assignee")}
PATCH = {name: text(issues.LONGEST_TEXT) for name in ("title", "description", "status", "priority")}


class Issues(Resource):
    """All issues of the workspace."""

    serializer_class = IssueSerializer
    event = "issue_created"

    @documented(
        "List issues without their texts, newest first.",
        IssueLine(many=True),
        query={"status": "Only issues of this status.", "assignee": "Only issues of this agent or person."},
    )
    def get(self, request: Request) -> Response:
        rows = Issue.objects.for_who(self.who).of(**self.filters("status", "assignee"))
        return self.page(rows.shown(), lambda found: [issue_line(row) for row in found])

    @documented("Open an issue.", IssueSerializer, status=201, body=IssueDraft)
    def post(self, request: Request) -> Response:
        given = read(self.body, DRAFT, "title")
        made = self.changed(lambda: issues.create_issue(by=self.who, **given))
        return Response(issue_card(made), status=201)


class OneIssue(Resource):
    """One issue, by id or key."""

    event = "issue_changed"

    def find(self, ref: str) -> Issue:
        """The issue of that id or key."""
        found: Issue = self.one(Issue.objects.for_who(self.who).named(ref).shown())
        return found


class Card(OneIssue):
    """Read and change."""

    serializer_class = IssueSerializer

    @documented("Read an issue.", IssueSerializer, also=(404,))
    def get(self, request: Request, ref: str) -> Response:
        return Response(issue_card(self.find(ref)))

    @documented("Change an issue.", IssueSerializer, body=IssuePatch, also=(404, 409))
    def patch(self, request: Request, ref: str) -> Response:
        issue, given = self.find(ref), self.body
        version = take_version(given)
        refuse_unknown("", given, PATCH)
        changes = read(given, PATCH)
        return Response(issue_card(self.changed(lambda: changed(issue, self.who, version, changes))))


def changed(issue: Issue, by: Who, version: int | None, changes: dict[str, str]) -> Issue:
    """The issue after the change, unless its version has moved on."""
    row = issues.find_issue(by, issue.id, lock=True)
    refuse_stale(row.version, version)
    return issues.update_issue(row.id, by=by, **changes)


class Comments(OneIssue):
    """The comments of one issue."""

    serializer_class = CommentSerializer
    event = "issue_commented"

    @documented("List an issue's comments, newest first.", CommentSerializer(many=True), also=(404,))
    def get(self, request: Request, ref: str) -> Response:
        rows = Comment.objects.for_who(self.who).filter(issue=self.find(ref))
        return self.page(rows, lambda found: [comment_card(row) for row in found])

    @documented("Comment on an issue.", CommentSerializer, status=201, body=CommentDraft, also=(404,))
    def post(self, request: Request, ref: str) -> Response:
        issue, given = self.find(ref), read(self.body, {"body": text(issues.LONGEST_COMMENT)}, "body")
        made = self.changed(lambda: issues.comment_issue(issue.id, given["body"], by=self.who))
        return Response(comment_card(made), status=201)


class Wakes(Resource):
    """What is queued to wake agents. Read-only."""

    serializer_class = WakeSerializer

    @documented("List wakes, newest first.", WakeSerializer(many=True), query={"agent": "Only wakes of this agent."})
    def get(self, request: Request) -> Response:
        return self.page(self.of_agent(Wake.objects.for_who(self.who)))


class OneWake(Resource):
    """One wake. Read-only."""

    serializer_class = WakeSerializer

    @documented("Read a wake.", WakeSerializer, also=(404,))
    def get(self, request: Request, ident: str) -> Response:
        row = self.one(Wake.objects.for_who(self.who).filter(pk=ident).select_related("agent"))
        return Response(self.get_serializer(row).data)
