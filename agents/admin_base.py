"""What every admin page of a tenant's rows shares: one workspace, rights by role, inert text.

State is never a field of a form. It changes through actions, which call the same domain verbs as MCP and REST.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from agents.admin_columns import OwnValuesFilter, is_text, list_column, page_column
from agents.models import PolicyChange, Role
from duduclaw.adminsite import principal
from duduclaw.lib.visible import line
from mcp.policy import Who


def someone(request: HttpRequest) -> Who:
    """The signed-in person; the site has let nobody else in."""
    who = principal(request)
    if who is None:
        raise PermissionDenied
    return who


def has_role(request: HttpRequest, role: Role) -> bool:
    """Whether the person's role includes `role`."""
    who = principal(request)
    return who is not None and Role(who.role).rank >= role.rank


class WorkspaceAdmin(admin.ModelAdmin):
    """Read-only rows of the signed-in person's workspace. Subclasses open actions, or forms, by role."""

    workspace_path: ClassVar[str] = "workspace_id"
    hidden: ClassVar[tuple[str, ...]] = ()  # columns that no page shows
    change_role: ClassVar[Role | None] = None
    add_role: ClassVar[Role | None] = None
    list_per_page = 50
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Rows of one workspace: another's are as absent as rows that never were."""
        who = principal(request)
        rows = super().get_queryset(request)
        return self.owned(rows, who) if who else rows.none()

    def owned(self, rows: models.QuerySet[Any], who: Who) -> models.QuerySet[Any]:
        """The rows that belong to the person's workspace."""
        return rows.filter(**{self.workspace_path: who.workspace})

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """None for what the workspace does not have; PostgreSQL cannot even ask for a NUL."""
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> Any:
        """Choices of a relation: the workspace's own rows."""
        return self.admin_site.get_model_admin(db_field.related_model).get_queryset(request)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Pickers pick: the rows they offer are edited on their own pages."""
        made = super().formfield_for_dbfield(db_field, request, **kwargs)
        for right in ("can_add_related", "can_change_related", "can_view_related", "can_delete_related"):
            if made is not None and hasattr(made.widget, right):
                setattr(made.widget, right, False)
        return made

    def has_module_permission(self, request: HttpRequest) -> bool:
        return principal(request) is not None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return principal(request) is not None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.add_role is not None and has_role(request, self.add_role)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.change_role is not None and has_role(request, self.change_role)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Actions marked `permissions=["operate"]`."""
        return has_role(request, Role.OPERATOR)

    def has_administer_permission(self, request: HttpRequest) -> bool:
        """Actions marked `permissions=["administer"]`."""
        return has_role(request, Role.ADMIN)

    def get_list_display(self, request: HttpRequest) -> Any:
        return [self.column(name, list_column) for name in self.list_display]

    def get_list_filter(self, request: HttpRequest) -> Any:
        return [self.filter_of(item) for item in self.list_filter]

    def filter_of(self, item: Any) -> Any:
        """A text column is filtered by its values, made inert."""
        if not isinstance(item, str) or not is_text(self.model._meta.get_field(item)):
            return item
        return (item, OwnValuesFilter)

    def action_checkbox(self, row: Any) -> Any:
        """The box before a row; its label for screen readers is inert as well."""
        box = forms.CheckboxInput(
            {"class": "action-select", "aria-label": f"Select {line(str(row))}"}, lambda value: False
        )
        return box.render(helpers.ACTION_CHECKBOX_NAME, str(row.pk))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Every column but the hidden ones, all read-only, unless the class says otherwise."""
        if self.fields or self.fieldsets:
            return super().get_fieldsets(request, obj)
        columns = (*self.model._meta.fields, *self.model._meta.many_to_many)
        shown = [self.column(field.name, page_column) for field in columns if field.name not in self.hidden]
        return [(None, {"fields": shown})]

    def column(self, name: Any, how: Callable[[Any, str], Any]) -> Any:
        """The admin's own method of that name, or the model's column made inert."""
        own = not isinstance(name, str) or hasattr(type(self), name)
        return name if own else how(self.model, name)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only by the filters on the page: a free look-up would be an oracle for hidden columns."""
        offered = {self.date_hierarchy}
        for item in self.get_list_filter(request):
            plain = item[0] if isinstance(item, list | tuple) else item
            offered.add(plain if isinstance(plain, str) else plain.parameter_name)
        asked = any(lookup == name or lookup.startswith(f"{name}__") for name in offered if name)
        return asked and super().lookup_allowed(lookup, value, request)

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """The page; its headings show hidden characters too."""
        found = self.get_object(request, admin.utils.unquote(object_id)) if object_id else None
        named_as = {"subtitle": line(str(found)), "shown_as": line(str(found), 60)} if found else {}
        return super().changeform_view(request, object_id, form_url, {**named_as, **(extra_context or {})})

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Policy history of the row, instead of the admin's own log, which would know only the admin's changes."""
        row = self.get_object(request, admin.utils.unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": f"History: {line(str(row), 60)}",
            "changes": PolicyChange.objects.for_who(someone(request)).filter(ref=self.history_ref(row))[:200],
            "object": row,
            "shown_as": line(str(row), 60),
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/history.html", context)

    def history_ref(self, row: Any) -> str:
        """What policy history calls the row."""
        return str(row.pk)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        """Nothing: the domain's actions keep the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        """Nothing: the domain's actions keep the record."""
