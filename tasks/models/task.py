"""The board: tasks and the activity feed."""

from typing import ClassVar

from django.db import models

from agents.models import Agent, Workspace
from duduclaw.lib.ids import new_id
from duduclaw.lib.owned import manager
from tasks.querysets import ActivityQuerySet, TaskQuerySet


class Task(models.Model):
    """A card of the board. `number` is short and per workspace: T-121."""

    class Kind(models.TextChoices):
        """`goal` passes the judge before it is done; discovery has its own family."""

        TASK = "task"
        GOAL = "goal"

    class Status(models.TextChoices):
        """Plain: todo, in_progress, blocked, done. Durable: pending, in_progress, ... (rules of the board)."""

        TODO = "todo"
        PENDING = "pending"
        IN_PROGRESS = "in_progress"
        BLOCKED = "blocked"
        REVIEW = "review"
        REVISING = "revising"
        NEEDS_HUMAN = "needs_human"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        STOPPED = "stopped"

    class Priority(models.TextChoices):
        """How soon."""

        URGENT = "urgent"
        HIGH = "high"
        MEDIUM = "medium"
        LOW = "low"

    FINISHED = ("done", "failed", "cancelled", "stopped")
    GRANTS_END = (*FINISHED, "needs_human")

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tasks")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.TASK)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.TODO)
    priority = models.CharField(max_length=8, choices=Priority.choices, default=Priority.MEDIUM)
    durable = models.BooleanField(default=False)
    goal_mode = models.BooleanField(default=False)
    acceptance_criteria = models.TextField(blank=True)
    assigned_to = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="assigned")
    claimed_by = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="claimed")
    holder = models.CharField(max_length=120, blank=True)  # who holds the claim, by name: `claimed_by`, or a person
    claim_key = models.CharField(max_length=36, blank=True)  # the run key that claimed: its end frees a plain task
    pooled = models.BooleanField(default=False)  # unassigned before the claim, and again when the claim is lost
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=120)  # an agent's name, or an operator's
    creator = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="created")
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    depends_on = models.ManyToManyField("self", symmetrical=False, blank=True, related_name="blocks")
    tags = models.JSONField(default=list, blank=True)
    blocked_reason = models.TextField(blank=True)
    summary = models.TextField(blank=True)
    retries = models.PositiveIntegerField(default=0)
    max_retries = models.PositiveIntegerField(default=3)
    occurrence = models.BooleanField(default=False)  # root of a responsibility's run
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = manager(TaskQuerySet)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("workspace", "number"), name="one_task_a_number"),
        ]
        indexes: ClassVar = [models.Index(fields=("workspace", "status")), models.Index(fields=("lease_expires_at",))]

    def __str__(self) -> str:
        return f"T-{self.number} {self.title}"


class Activity(models.Model):
    """One line of the feed. Never changed."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.CASCADE, related_name="activity")
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="activity")
    actor = models.CharField(max_length=120)
    event_type = models.CharField(max_length=64)
    summary = models.TextField()
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    objects = manager(ActivityQuerySet)

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name_plural = "activity"
        indexes: ClassVar = [models.Index(fields=("workspace", "created_at"))]

    def __str__(self) -> str:
        return f"{self.event_type} by {self.actor}"


class Counter(models.Model):
    """The last short number given in a workspace, for tasks and for issues."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    kind = models.CharField(max_length=8)
    n = models.PositiveIntegerField(default=0)

    objects = manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=("workspace", "kind"), name="one_counter_a_kind")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.n}"
