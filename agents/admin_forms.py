"""Forms whose save is a domain action. A refusal of the action stands in the form, and nothing was written."""

from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from django import forms
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime

from agents.admin_base import WorkspaceAdmin, someone
from agents.models import PolicyChange
from duduclaw.lib import clock
from duduclaw.lib.visible import line
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who


class LinesField(forms.CharField):
    """A list of texts, one a line. Lines are taken as they are; what is wrong with them the form says."""

    widget = forms.Textarea(attrs={"rows": 5, "cols": 60, "spellcheck": "false", "class": "lines"})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(strip=False, required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(str(item) for item in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        if isinstance(value, list):
            return [str(item) for item in value]
        return [entry for entry in str(value or "").replace("\r\n", "\n").split("\n") if entry]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(initial) != self.to_python(data)


MALFORMED = "malformed"


class FlagField(forms.TypedChoiceField):
    """A permission: not set and allowed are open, refused is closed; what is stored badly refuses too."""

    CHOICES = (("", "not set (allowed)"), ("true", "allowed"), ("false", "refused"))
    VALUES: ClassVar[dict[str, bool | None]] = {"": None, "true": True, "false": False}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=self.CHOICES, coerce=self.VALUES.get, empty_value=None, required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, bool) or value is None:
            return {None: "", True: "true", False: "false"}[value]
        return value if isinstance(value, str) and value in self.VALUES else MALFORMED

    def offer_stored(self, value: Any) -> None:
        """What is stored badly can stay as it is."""
        if self.prepare_value(value) == MALFORMED:
            self.choices = [*self.CHOICES, (MALFORMED, "malformed (refused)")]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.prepare_value(initial) != (data or ""))


class ActionForm(forms.ModelForm):
    """Collects what a person changed. It neither validates for the model nor saves: the action does both."""

    refusal: ClassVar[Refused | InvalidArguments | None] = None
    story: ClassVar[str] = ""  # what happened meanwhile, when the refusal is `stale`

    def clean(self) -> dict[str, Any]:
        """Outer blanks in a changed list, and what the action refused in the first try."""
        for name in self.changed_data:
            if isinstance(self.fields[name], LinesField):
                self.check_lines(name)
        if isinstance(self.refusal, InvalidArguments):
            parameter = (self.refusal.parameter or "").split(".")[-1]
            self.add_error(parameter if parameter in self.fields else None, self.refusal.message)
        elif self.refusal is not None:
            self.add_error(None, f"{self.refusal.detail} {self.story}".strip())
        return self.cleaned_data

    def check_lines(self, name: str) -> None:
        """Entries match exactly as stored, so a blank at an end would never match."""
        stored = self.initial.get(name) or []
        for number, entry in enumerate(self.cleaned_data.get(name) or [], start=1):
            if entry != entry.strip() and entry not in stored:
                self.add_error(name, f"Line {number} has a blank at its beginning or end.")

    def _post_clean(self) -> None:
        """Leave the instance as it was read: the action compares and writes."""

    def save(self, commit: bool = True) -> Any:
        """The untouched instance."""
        return self.instance

    def changes(self) -> dict[str, Any]:
        """Field -> new value, of the fields that the person changed."""
        return {name: self.cleaned_data[name] for name in self.changed_data if name in self.cleaned_data}


class VersionedForm(ActionForm):
    """Carries the version that the person saw, so that a stale form cannot overwrite newer state."""

    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)
    opened_at = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.update(seen_version=getattr(self.instance, "version", None), opened_at=clock.stamp(clock.now()))

    def changes(self) -> dict[str, Any]:
        found = super().changes()
        return {name: value for name, value in found.items() if name not in ("seen_version", "opened_at")}


_refused: WeakKeyDictionary[HttpRequest, tuple[Refused | InvalidArguments, str]] = WeakKeyDictionary()


class ActionAdmin(WorkspaceAdmin):
    """An add or change page whose save calls `perform`, once, in the page's transaction."""

    def perform(self, who: Who, form: Any, row: Any | None) -> Any:
        """Call the action and return the row; raises `Refused` or `InvalidArguments`. `row` is None when adding."""
        raise NotImplementedError

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        made: Any = super().get_form(request, obj, change, **kwargs)
        made.refusal, made.story = _refused.get(request, (None, ""))
        return made

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """A refusal rolls the page's transaction back; the second pass shows the form with it."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except (Refused, InvalidArguments) as refusal:
            _refused[request] = (refusal, self.story(request, object_id, refusal))
            return super().changeform_view(request, object_id, form_url, extra_context)

    def story(self, request: HttpRequest, object_id: Any, refusal: Exception) -> str:
        """Who changed what since the form was opened, when that is why it was refused."""
        if not (isinstance(refusal, Refused) and refusal.code == "stale"):
            return ""
        told = changed_since(someone(request), str(object_id), request.POST.get("opened_at", ""))
        return f"{told} Nothing was saved: reload the page to start from what stands now.".strip()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        made = self.perform(someone(request), form, obj if change else None)
        obj.pk = made.pk
        obj.refresh_from_db()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing: `perform` has written all."""


def changed_since(who: Who, ref: str, opened_at: str) -> str:
    """The newest changes of a row since a moment, in words."""
    rows = PolicyChange.objects.for_who(who).filter(ref=ref)
    opened = read_time(opened_at)
    told = [
        f"{row.field}: {line(str(row.before), 80)} → {line(str(row.after), 80)} ({line(row.changed_by, 40)})"
        for row in (rows.filter(changed_at__gte=opened) if opened else rows)[:8]
    ]
    return f"Changed meanwhile: {'; '.join(told)}." if told else ""


def read_time(text: str) -> Any:
    """The moment in a hidden field, or None when somebody wrote nonsense into it."""
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found and found.tzinfo else None
