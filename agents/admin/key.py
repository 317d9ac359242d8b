"""Keys: made after step-up, shown once on the answer page and never again, revoked by an action."""

import secrets
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from agents.actions.keys import create_key, revoke_key
from agents.admin_base import someone
from agents.admin_columns import OwnRelatedFilter
from agents.admin_forms import ActionAdmin, ActionForm
from agents.admin_pages import Question, confirmed, each
from agents.models import Key, Role
from duduclaw import stepup
from duduclaw.lib import clock
from mcp import scopes
from mcp.policy import Who

ONCE = "key_form"  # session key: the one form that may still make a key
SOON = timedelta(days=7)
FIELDS = ("kind", "agent", "label", "client_id", "role", "scopes", "expires_at")


class KeyForm(ActionForm):
    """What a new key is for. Run keys are made by the platform for each run, never by hand."""

    scopes = forms.MultipleChoiceField(
        required=False,
        choices=[(scope, scope) for scope in sorted(scopes.SCOPES)],
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: admin for agents and operators, nothing for external clients.",
    )
    once = forms.CharField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Key
        fields = FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" not in self.fields:  # a read-only page
            return
        self.fields["kind"].choices = [item for item in Key.Kind.choices if item[0] != Key.Kind.RUN]  # type: ignore[attr-defined]
        for name in ("client_id", "expires_at"):
            self.fields[name].required = False
        self.fields["expires_at"].help_text = "Empty: 30 days from now. At most 365 days."
        self.fields["role"].help_text = "Of an operator key. Empty: operator."


@admin.register(Key)
class KeyAdmin(ActionAdmin):
    """Who may prove to be whom, and until when."""

    form = KeyForm
    add_role = Role.ADMIN
    hidden = ("digest",)
    list_display = ("prefix", "label", "kind", "client_id", "state", "role", "expires_at", "created_by", "created_at")
    list_filter = ("kind", "role", ("agent", OwnRelatedFilter))
    search_fields = ("prefix", "label", "client_id", "created_by")
    autocomplete_fields = ("agent",)
    list_select_related = ("agent",)
    date_hierarchy = "created_at"
    actions = ("revoke",)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": (*FIELDS, "once")})] if obj is None else super().get_fieldsets(request, obj)

    @admin.display(description="state", ordering="expires_at")
    def state(self, row: Key) -> str:
        """Revoked, expired, or how long it still works when that is less than a week."""
        left = row.expires_at - clock.now()
        if row.revoked_at:
            return "revoked"
        if left <= timedelta():
            return "expired"
        return f"ends in {left.days} d {left.seconds // 3600} h" if left <= SOON else "works"

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Only after step-up, and each form makes one key: a reload of the answer makes no second one."""
        if self.has_add_permission(request):
            if not stepup.fresh(request):
                return stepup.ask(request, request.path)
            if request.method == "POST" and not self.may_still(request):
                messages.error(request, "This form has made its key already. The key cannot be shown again.")
                return HttpResponseRedirect(reverse("admin:agents_key_changelist"))
        return super().add_view(request, form_url, extra_context)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        once = request.session.setdefault(ONCE, secrets.token_hex(16))
        return {**super().get_changeform_initial_data(request), "once": once}

    def may_still(self, request: HttpRequest) -> bool:
        """Whether the form that was sent has made no key yet."""
        waiting = request.session.get(ONCE, "")
        return bool(waiting) and secrets.compare_digest(waiting, request.POST.get("once", ""))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        key, text = make(someone(request), form.cleaned_data)
        del request.session[ONCE]
        obj.pk = key.pk
        obj.refresh_from_db()
        obj.shown_once = text

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        """The key's text, on this page only: no redirect, no message, nothing that keeps it."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Key made",
            "key": obj,
            "text": obj.shown_once,
            "address": request.build_absolute_uri("/mcp"),
            "opts": self.opts,
        }
        response = TemplateResponse(request, "admin/agents/key/made.html", context)
        add_never_cache_headers(response)
        return response

    @admin.action(description="Revoke…", permissions=["administer"])
    def revoke(self, request: HttpRequest, rows: Any) -> Any:
        says = "These keys open nothing from now on, and their connections are closed. This cannot be undone."
        answers = confirmed(self, request, rows, Question("Revoke keys", says, "Revoke", grave=True))
        if not isinstance(answers, dict):
            return answers
        who = someone(request)
        return each(request, rows, lambda key: revoked(key, who))


def make(who: Who, given: dict[str, Any]) -> tuple[Key, str]:
    """The action with the form's answers."""
    return create_key(
        by=who,
        kind=given["kind"],
        agent=given.get("agent"),
        scopes_held=given.get("scopes") or None,
        role=given.get("role") or "",
        client_id=given.get("client_id") or "",
        label=given.get("label") or "",
        expires_at=given.get("expires_at"),
    )


def revoked(key: Key, who: Who) -> str:
    revoke_key(key, by=who)
    return "revoked."
