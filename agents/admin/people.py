"""People of the workspace and their roles."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_post_parameters

from agents.actions import people, policy
from agents.admin_base import someone
from agents.admin_forms import ActionAdmin, ActionForm
from agents.admin_pages import Question, confirmed, each
from agents.models import Membership, Role
from mcp.policy import Who


class PersonForm(ActionForm):
    """A new account, and the role that it has here."""

    username = forms.CharField(max_length=150)
    password = forms.CharField(strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}))

    class Meta:
        model = Membership
        fields = ("role",)


@admin.register(Membership)
class MembershipAdmin(ActionAdmin):
    """Who may sign in to this workspace, as what."""

    form = PersonForm
    add_role = Role.ADMIN
    list_display = ("user", "role")
    list_filter = ("role",)
    search_fields = ("user__username",)
    list_select_related = ("user",)
    ordering = ("user__username",)
    actions = ("make_viewer", "make_operator", "make_manager", "make_admin", "remove")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return [(None, {"fields": ("username", "password", "role")})]
        return [(None, {"fields": ("name", "role")})]

    @admin.display(description="user")
    def name(self, row: Membership) -> str:
        """The account's name; accounts have no page here."""
        return str(row.user.get_username())

    def history_ref(self, row: Membership) -> str:
        return str(row.user_id)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        """The form holds a password: no error report shows it."""
        return sensitive_post_parameters("password")(super().add_view)(request, form_url, extra_context)

    def perform(self, who: Who, form: PersonForm, row: Membership | None) -> Membership:
        """Make the account and its membership."""
        given = form.cleaned_data
        return people.add_person(by=who, username=given["username"], password=given["password"], role=given["role"])

    @admin.action(description="Make viewer: reads only", permissions=["administer"])
    def make_viewer(self, request: HttpRequest, rows: Any) -> None:
        set_roles(request, rows, Role.VIEWER)

    @admin.action(description="Make operator: decides and steers agents", permissions=["administer"])
    def make_operator(self, request: HttpRequest, rows: Any) -> None:
        set_roles(request, rows, Role.OPERATOR)

    @admin.action(description="Make manager", permissions=["administer"])
    def make_manager(self, request: HttpRequest, rows: Any) -> None:
        set_roles(request, rows, Role.MANAGER)

    @admin.action(description="Make admin: keys and settings too", permissions=["administer"])
    def make_admin(self, request: HttpRequest, rows: Any) -> None:
        set_roles(request, rows, Role.ADMIN)

    @admin.action(description="Remove from the workspace…", permissions=["administer"])
    def remove(self, request: HttpRequest, rows: Any) -> Any:
        says = "They can no longer open this workspace. Their accounts stay."
        answers = confirmed(self, request, rows, Question("Remove people", says, "Remove", grave=True))
        return set_roles(request, rows, "") if isinstance(answers, dict) else answers


def set_roles(request: HttpRequest, rows: Any, role: str) -> None:
    """The same role for each of the chosen people; "" takes the membership away."""
    who = someone(request)

    def change(row: Membership) -> str:
        policy.set_role(row.user, by=who, role=role)
        return f"is {role} now." if role else "is removed."

    each(request, rows, change)
