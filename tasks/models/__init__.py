"""What is to be done: the board, issues, wakes."""

from tasks.models.issue import Comment, Issue, Wake
from tasks.models.task import Activity, Counter, Task

__all__ = ["Activity", "Comment", "Counter", "Issue", "Task", "Wake"]
