"""Tasks of the board."""

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions.fields import Check, boolean, choice, entries, fault, line, refuse_unknown, whole
from duduclaw.api.docs import documented
from duduclaw.api.resource import Resource, read, take_version
from duduclaw.api.serializers.board import Feedback, Note, Reason, TaskDraft, TaskPatch, TaskSerializer
from tasks import render
from tasks.actions import create, finish, update
from tasks.models import Task


def text(longest: int) -> Check:
    """Any text up to a length; the actions say what else is wrong with it."""

    def check(where: str, value: Any, stored: Any = None) -> str:
        if not isinstance(value, str) or len(value) > longest:
            raise fault(where, f"must be a string of at most {longest} characters")
        return value

    return check


PRIORITY = choice(*Task.Priority.values)
PATCH = frozenset({*update.FIELDS, "version"})
DRAFT = {
    "title": text(200),
    "description": text(20_000),
    "kind": choice(*create.KINDS),
    "priority": choice(*Task.Priority.values),
    "tags": entries(100, 200),
    "assigned_to": line(64),
    "depends_on": entries(100, 64),
    "parent_task_id": line(64),
    "durable": boolean,
    "goal_mode": boolean,
    "acceptance_criteria": text(20_000),
    "max_retries": whole(0, create.MOST_RETRIES),
}


class Tasks(Resource):
    """All cards of the board."""

    serializer_class = TaskSerializer
    event = "task_created"

    @documented(
        "List tasks, newest first.",
        TaskSerializer(many=True),
        query={
            "status": "Only cards of this status.",
            "priority": "Only cards of this priority.",
            "assigned_to": "Only cards of this agent.",
        },
    )
    def get(self, request: Request) -> Response:
        wanted = self.filters("status", "priority", "assigned_to")
        return self.page(Task.objects.for_who(self.who).of(**wanted).shown(), render.cards)

    @documented("Create a task.", TaskSerializer, status=201, body=TaskDraft, also=(422,))
    def post(self, request: Request) -> Response:
        draft = create.Draft(**read(self.body, DRAFT, "title"))
        made = self.changed(lambda: create.create_task(draft, by=self.who))
        return Response(render.card(made), status=201)


class OneTask(Resource):
    """One card, by id or short number."""

    serializer_class = TaskSerializer
    event = "task_changed"

    def find(self, ref: str) -> Task:
        """The task of that id or number."""
        found: Task = self.one(Task.objects.for_who(self.who).named(ref).shown())
        return found


class Card(OneTask):
    """Read and change."""

    @documented("Read a task.", TaskSerializer, also=(404,))
    def get(self, request: Request, ref: str) -> Response:
        return Response(render.card(self.find(ref)))

    @documented("Change a task.", TaskSerializer, body=TaskPatch, also=(404, 409, 422))
    def patch(self, request: Request, ref: str) -> Response:
        task, changes = self.find(ref), self.body
        refuse_unknown("", changes, PATCH)
        version = take_version(changes)
        done = self.changed(lambda: update.update_task(task, by=self.who, version=version, **changes))
        return Response(render.card(done))


class Move(OneTask):
    """A person's decision about a task; `word` is the field that says why."""

    verb: Callable[..., Task]
    word = "note"
    required = False

    def post(self, request: Request, ref: str) -> Response:
        """Make the move."""
        task = self.find(ref)
        given = read(self.body, {self.word: text(2_000)}, *([self.word] if self.required else []))
        done = self.changed(lambda: type(self).verb(task, by=self.who, **given))
        return Response(render.card(done))


def moving(says: str, body: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The description of a move."""
    return documented(says, TaskSerializer, body=body, also=(404, 409, 422))


class Cancel(Move):
    """Give up."""

    verb, word = staticmethod(finish.cancel_task), "reason"

    @moving("Give a task up.", Reason)
    def post(self, request: Request, ref: str) -> Response:
        return super().post(request, ref)


class Accept(Move):
    """Good."""

    verb = staticmethod(finish.accept_task)

    @moving("Find a task's result good.", Note)
    def post(self, request: Request, ref: str) -> Response:
        return super().post(request, ref)


class Reject(Move):
    """Not good."""

    verb, word, required = staticmethod(finish.reject_task), "feedback", True

    @moving("Send a task back with feedback.", Feedback)
    def post(self, request: Request, ref: str) -> Response:
        return super().post(request, ref)


class Retry(Move):
    """Again."""

    verb = staticmethod(finish.retry_task)

    @moving("Let a task go on, free to be claimed.", Note)
    def post(self, request: Request, ref: str) -> Response:
        return super().post(request, ref)
