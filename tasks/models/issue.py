"""Issues of the workspace, their comments, and the wakes that an assignment queues."""

from typing import ClassVar

from django.db import models

from agents.models import Agent, Workspace
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager
from tasks.issue_querysets import CommentQuerySet, IssueQuerySet, WakeQuerySet
from tasks.models.task import Task


class Issue(models.Model):
    """A report or wish, with a short key such as AAC-42. May be linked to a task."""

    class Status(models.TextChoices):
        """Where it stands."""

        OPEN = "open"
        IN_PROGRESS = "in_progress"
        DONE = "done"
        CLOSED = "closed"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="issues")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.OPEN)
    priority = models.CharField(max_length=8, choices=Task.Priority.choices, default=Task.Priority.MEDIUM)
    assignee = models.CharField(max_length=120, blank=True)  # an agent's name or a person's
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="issues")
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.SET_NULL, related_name="issues")
    created_by = models.CharField(max_length=120)
    author_ref = models.CharField(max_length=140, editable=False)  # proves authorship; names can be given again
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = manager(IssueQuerySet)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints: ClassVar = [models.UniqueConstraint(fields=("workspace", "number"), name="one_issue_a_number")]

    def __str__(self) -> str:
        return self.title


class Comment(models.Model):
    """A comment on an issue."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    issue = models.ForeignKey(Issue, on_delete=models.CASCADE, related_name="comments")
    author = models.CharField(max_length=120)
    author_ref = models.CharField(max_length=140, editable=False)
    body = models.TextField()
    created_at = models.DateTimeField()

    objects = manager(CommentQuerySet)

    class Meta:
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return f"comment by {self.author}"


class Wake(models.Model):
    """A wish that an agent wakes. Nothing runs it yet: the runtimes' issue adds the runner."""

    class State(models.TextChoices):
        """Only `queued` is written so far."""

        QUEUED = "queued"

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="wakes")
    reason = models.CharField(max_length=64)
    issue = models.ForeignKey(Issue, null=True, blank=True, on_delete=models.SET_NULL, related_name="wakes")
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    requested_by = models.CharField(max_length=120)
    created_at = models.DateTimeField()

    objects = manager(WakeQuerySet)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.reason}: {self.state}"
