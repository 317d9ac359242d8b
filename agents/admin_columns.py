"""Columns and filters of the admin that show what agents wrote: escaped, with hidden characters visible."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from duduclaw.lib.visible import line, visible

Column = Callable[[Any], Any]


class OwnValuesFilter(admin.AllValuesFieldListFilter):
    """A sidebar filter by the values of a text column, each on one escaped line."""

    def choices(self, changelist: Any) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": line(str(choice["display"]), 40)}


class OwnRelatedFilter(admin.RelatedFieldListFilter):
    """A sidebar filter by a related row, offering the workspace's own rows only."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        related = model_admin.admin_site.get_model_admin(field.related_model)
        return [(row.pk, line(str(row), 40)) for row in related.get_queryset(request)[:200]]


@cache
def list_column(model: type[models.Model], name: str) -> str | Column:
    """A text or relation column as an escaped, single, cut line; other columns as Django shows them."""
    return as_column(model, name, line)


@cache
def page_column(model: type[models.Model], name: str) -> str | Column:
    """The same on a page: whole, and a relation is a link."""
    field = model._meta.get_field(name)
    if field.many_to_one or field.one_to_one:
        return named(field, lambda row: link(getattr(row, name)))
    if field.many_to_many:
        return named(field, lambda row: visible(", ".join(str(other) for other in getattr(row, name).all())))
    return as_column(model, name, visible)


def as_column(model: type[models.Model], name: str, show: Callable[[str], str]) -> str | Column:
    """Text and JSON pass through `show`; choices, numbers and times hold nothing that anybody wrote."""
    field = model._meta.get_field(name)
    if field.many_to_one or field.one_to_one:
        return named(field, lambda row: show(str(getattr(row, name) or "")))
    if isinstance(field, models.JSONField):
        return named(field, lambda row: show(json.dumps(getattr(row, name), ensure_ascii=False)))
    if is_text(field):
        return named(field, lambda row: show(getattr(row, name) or ""))
    return name


def is_text(field: Any) -> bool:
    """Text that somebody wrote: no choices."""
    return isinstance(field, models.CharField | models.TextField) and not field.choices


def named(field: Any, column: Column) -> Column:
    """Give a column its field's heading and sort order."""
    column.__name__ = field.name
    column.short_description = field.verbose_name  # type: ignore[attr-defined]
    column.admin_order_field = field.name  # type: ignore[attr-defined]
    return column


def link(row: models.Model | None) -> str:
    """The row's text as a link to its page."""
    if row is None or not admin.site.is_registered(type(row)):
        return line(str(row or ""))
    address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[quote(row.pk)])
    return format_html('<a href="{}">{}</a>', address, line(str(row)))
