"""Actions of a list: a page that asks first, then one domain action a row, each with its own answer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.http import HttpRequest
from django.template.response import TemplateResponse

from duduclaw.lib.visible import line
from mcp.errors import InvalidArguments, Refused


class Plain(forms.Form):
    """Nothing but yes."""


class WithReason(forms.Form):
    """Yes, and why."""

    reason = forms.CharField(max_length=500, widget=forms.Textarea(attrs={"rows": 3, "cols": 60}))


class WithNote(forms.Form):
    """Yes, and a note if there is something to say."""

    note = forms.CharField(required=False, max_length=500, widget=forms.Textarea(attrs={"rows": 3, "cols": 60}))


@dataclass(frozen=True)
class Question:
    """What the page before an action says. `button` is the verb; `grave` paints it as a danger."""

    title: str
    says: str
    button: str
    form: type[forms.Form] = Plain
    grave: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def confirmed(
    page: admin.ModelAdmin, request: HttpRequest, rows: Iterable[Any], question: Question
) -> dict[str, Any] | TemplateResponse:
    """The answers of the form once it was sent with this question's button, else the page that asks."""
    asked = question.form(request.POST if "confirmed" in request.POST else None)
    if asked.is_valid():
        return asked.cleaned_data
    context = {
        **page.admin_site.each_context(request),
        "title": question.title,
        "question": question,
        "form": asked,
        "rows": list(rows),
        "opts": page.opts,
        "action": request.POST.get("action", ""),
        "checkbox": helpers.ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/confirm.html", context)


def each(request: HttpRequest, rows: Iterable[Any], verb: Callable[[Any], str]) -> None:
    """Run `verb` on every row and say what came of it; one refusal does not stop the rest."""
    for row in list(rows):
        name = line(str(row), 60)
        try:
            said = verb(row)
        except (Refused, InvalidArguments) as refusal:
            detail = refusal.detail if isinstance(refusal, Refused) else refusal.message
            messages.error(request, f"{name}: {line(detail, 300)}")
        else:
            messages.success(request, f"{name}: {said}")
