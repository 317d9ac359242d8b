"""Tasks, issues, comments, wakes."""

from typing import Any

from rest_framework import serializers

from duduclaw.api.serializers.common import Moment, Named
from tasks.models import Issue, Task, Wake


class TaskSerializer(serializers.Serializer[Any]):
    """A card of the board, as `tasks.render.card` renders it."""

    id = serializers.CharField()
    number = serializers.CharField(help_text="T-121")
    title = serializers.CharField()
    description = serializers.CharField()
    kind = serializers.ChoiceField(choices=Task.Kind.choices)
    status = serializers.ChoiceField(choices=Task.Status.choices)
    priority = serializers.ChoiceField(choices=Task.Priority.choices)
    assigned_to = serializers.CharField(allow_null=True)
    claimed_by = serializers.CharField(allow_null=True)
    created_by = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    depends_on = serializers.ListField(child=serializers.CharField())
    parent_task_id = serializers.CharField(allow_null=True)
    blocked_reason = serializers.CharField()
    summary = serializers.CharField()
    lease_expires_at = Moment(allow_null=True)
    created_at = Moment()
    goal_mode = serializers.BooleanField()
    acceptance_criteria = serializers.CharField()
    version = serializers.IntegerField()


class TaskPatch(serializers.Serializer[Any]):
    """What a PATCH of a task may hold."""

    title = serializers.CharField(max_length=200, required=False)
    description = serializers.CharField(required=False)
    priority = serializers.ChoiceField(choices=Task.Priority.choices, required=False)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    assigned_to = serializers.CharField(required=False, allow_null=True)
    depends_on = serializers.ListField(child=serializers.CharField(), required=False)
    parent_task_id = serializers.CharField(required=False, allow_null=True)
    version = serializers.IntegerField(required=False)


class TaskDraft(serializers.Serializer[Any]):
    """A new task."""

    title = serializers.CharField(max_length=200)
    description = serializers.CharField(required=False)
    kind = serializers.ChoiceField(choices=["task", "goal", "discovery"], required=False)
    priority = serializers.ChoiceField(choices=Task.Priority.choices, required=False)
    assigned_to = serializers.CharField(required=False)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    depends_on = serializers.ListField(child=serializers.CharField(), required=False)
    parent_task_id = serializers.CharField(required=False)
    durable = serializers.BooleanField(required=False)
    goal_mode = serializers.BooleanField(required=False)
    acceptance_criteria = serializers.CharField(required=False)
    max_retries = serializers.IntegerField(required=False)


class Note(serializers.Serializer[Any]):
    """Why, in a person's words."""

    note = serializers.CharField(required=False)


class Reason(serializers.Serializer[Any]):
    """Why, in a person's words."""

    reason = serializers.CharField(required=False)


class Feedback(serializers.Serializer[Any]):
    """What is to be done better."""

    feedback = serializers.CharField()


class IssueLine(serializers.Serializer[Any]):
    """An issue without its text."""

    id = serializers.CharField()
    key = serializers.CharField(help_text="AAC-42")
    number = serializers.IntegerField()
    title = serializers.CharField()
    status = serializers.ChoiceField(choices=Issue.Status.choices)
    priority = serializers.ChoiceField(choices=Task.Priority.choices)
    assignee = serializers.CharField(allow_null=True)
    task = serializers.CharField(allow_null=True)
    created_by = serializers.CharField()
    created_at = Moment()
    updated_at = Moment()
    version = serializers.IntegerField()


class IssueSerializer(IssueLine):
    """One issue."""

    description = serializers.CharField()


class IssueDraft(serializers.Serializer[Any]):
    """A new issue."""

    title = serializers.CharField(max_length=200)
    description = serializers.CharField(required=False)
    priority = serializers.ChoiceField(choices=Task.Priority.choices, required=False)
    assignee = serializers.CharField(required=False)


class IssuePatch(serializers.Serializer[Any]):
    """What a PATCH of an issue may hold."""

    title = serializers.CharField(max_length=200, required=False)
    description = serializers.CharField(required=False)
    status = serializers.ChoiceField(choices=Issue.Status.choices, required=False)
    priority = serializers.ChoiceField(choices=Task.Priority.choices, required=False)
    version = serializers.IntegerField(required=False)


class CommentSerializer(serializers.Serializer[Any]):
    """A comment."""

    id = serializers.CharField()
    issue_id = serializers.CharField()
    author = serializers.CharField()
    body = serializers.CharField()
    created_at = Moment()


class CommentDraft(serializers.Serializer[Any]):
    """A new comment."""

    body = serializers.CharField(max_length=10_000)


class WakeSerializer(serializers.ModelSerializer[Wake]):
    """A wish that an agent wakes."""

    agent = Named()
    issue_id = serializers.CharField(allow_null=True)
    created_at = Moment()

    class Meta:
        model = Wake
        fields = ("id", "agent", "reason", "issue_id", "state", "requested_by", "created_at")
