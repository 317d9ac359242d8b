"""A row of any model for one workspace, built from the model's own columns: a new model needs no builder."""

import itertools
from typing import Any

from django.contrib.auth.models import User
from django.db import models

from agents.models import Agent, Workspace
from duduclaw.lib import clock
from mcp.models import AuditRow, AuditSeal
from tests.build import Company

numbers = itertools.count(900_000)


def row_for(model: type[models.Model], company: Company, text: str = "text", **over: Any) -> Any:
    """Save and return one row that belongs to the company's workspace; every free text is `text`."""
    if model is AuditSeal and "row_uid" not in over:
        over["row_uid"] = row_for(AuditRow, company, text).uid
    values = {field.name: value(field, company, text) for field in model._meta.concrete_fields if wanted(field)}
    return model._base_manager.create(**{**values, **over})


def wanted(field: Any) -> bool:
    """Columns that have no default worth keeping: required ones, texts, and the links to agents and tasks."""
    if field.auto_created or field.name in ("name_key", "digest", "mac", "uid", "removed_at"):
        return False
    if field.is_relation:
        return not field.null
    return is_text(field) or not (field.has_default() or field.null or getattr(field, "auto_now_add", False))


def is_text(field: Any) -> bool:
    """Free text: no choices, no foreign meaning."""
    plain = isinstance(field, models.CharField | models.TextField) and not field.choices and not field.primary_key
    return plain and field.name not in ("workspace", "task_id", "claim_key")


def value(field: Any, company: Company, text: str) -> Any:
    """Something that the column takes."""
    if field.is_relation:
        return related(field.related_model, company, text)
    if field.name == "workspace":
        return company.space.pk
    if field.choices:
        return field.choices[0][0]
    if is_text(field):
        return text[: field.max_length or None]
    if isinstance(field, models.DateTimeField):
        return clock.now()
    if isinstance(field, models.IntegerField):
        return next(numbers)
    return field.get_default()


def related(model: type[models.Model], company: Company, text: str) -> Any:
    """The workspace, one of its agents, a person, or another new row."""
    if model is Workspace:
        return company.space
    if model is Agent:
        return company.owner
    if model is User:
        return User.objects.create_user(f"person-{next(numbers)}")
    return row_for(model, company, text)
