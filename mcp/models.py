"""The record: audit rows, their seals, and what each session was told. No foreign keys: it outlives all else."""

from typing import ClassVar

from django.db import models

from duduclaw.lib.ids import new_id


class AuditRow(models.Model):
    """One call (stream `tool_calls`) or one event that names it (`security`). Inserted once, never changed.

    Every column is text, so that the MAC is taken over the bytes that are stored.
    """

    uid = models.CharField(max_length=36, unique=True, default=new_id, editable=False)
    stream = models.CharField(max_length=16)
    workspace = models.CharField(max_length=36, db_index=True)
    timestamp = models.CharField(max_length=32, db_index=True)
    tool = models.CharField(max_length=64, blank=True)
    outcome = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=120, blank=True)
    key = models.CharField(max_length=36, blank=True)
    scopes_provided = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    transport = models.CharField(max_length=16, blank=True)
    ms = models.CharField(max_length=16, blank=True)
    arguments = models.TextField(blank=True)
    details = models.TextField(blank=True)
    mac = models.CharField(max_length=64)

    objects = models.Manager()

    class Meta:
        ordering = ("-id",)
        indexes: ClassVar = [models.Index(fields=("workspace", "stream", "tool"))]

    def __str__(self) -> str:
        return f"{self.timestamp} {self.tool} {self.outcome}"


class AuditSeal(models.Model):
    """The place of a row in the sealed order: numbers without gaps, given after commit; `mac` binds both."""

    seq = models.BigIntegerField(primary_key=True)
    row_uid = models.CharField(max_length=36, unique=True)
    mac = models.CharField(max_length=64)

    objects = models.Manager()

    class Meta:
        ordering = ("seq",)

    def __str__(self) -> str:
        return str(self.seq)


class AuditBlock(models.Model):
    """Rows `first` to `last` sealed together; each block carries the mac of the one before it.

    `high` and `holes` say which row ids the sealer has seen (`mcp.holes`). A tombstone stands for blocks that
    retention cut: its `root` is the mac of the last of them.
    """

    first = models.BigIntegerField()
    last = models.BigIntegerField()
    count = models.BigIntegerField()
    root = models.CharField(max_length=64)
    previous = models.CharField(max_length=64)
    tombstone = models.BooleanField(default=False)
    sealed_at = models.CharField(max_length=32)
    high = models.BigIntegerField(default=0)
    holes = models.TextField(default="[]")
    mac = models.CharField(max_length=64)

    objects = models.Manager()

    class Meta:
        ordering = ("first",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("tombstone", "first"), name="audit_block_first"),
            models.UniqueConstraint(fields=("tombstone", "last"), name="audit_block_last"),
        ]

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


class Session(models.Model):
    """An MCP session and its receipts: what it was told of its tools, and whether it looked again.

    `listening`: a stream is open that can tell it. `stale`: its tools changed and it has not looked since.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_id, editable=False)
    workspace = models.CharField(max_length=36, db_index=True)
    principal = models.CharField(max_length=120)
    key = models.CharField(max_length=36, db_index=True)
    transport = models.CharField(max_length=16)
    revision = models.CharField(max_length=16)
    client = models.CharField(max_length=120, blank=True)
    opened_at = models.DateTimeField()
    listed_hash = models.CharField(max_length=64, blank=True)
    listed_at = models.DateTimeField(null=True, blank=True)
    notified_hash = models.CharField(max_length=64, blank=True)
    notified_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    relisted_at = models.DateTimeField(null=True, blank=True)
    listening = models.BooleanField(default=False)
    stale = models.BooleanField(default=False)
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager()

    class Meta:
        ordering = ("-opened_at",)

    def __str__(self) -> str:
        return f"{self.principal} over {self.transport}"
