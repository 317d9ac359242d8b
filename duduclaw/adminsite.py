"""The admin's front door: who is signed in, for which workspace, and what stands on the first page.

A membership opens the door and its role decides; Django's staff flag and permissions decide nothing here.
"""

from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from django.contrib.admin import AdminSite
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_POST

from agents.models import Approval, FleetStop, Key, Membership
from agents.principals import who_for_user
from duduclaw import stepup
from duduclaw.lib import clock
from duduclaw.lib.rate import Bucket, Limiter
from mcp.policy import Who

WORKSPACE = "workspace"  # session key: the workspace chosen by a person who has several
KEY_WARNING = timedelta(days=7)
# The order of the first page: what waits for a person, then what is steered, then what is only read.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Decide", ("agents.Approval", "agents.Grant", "agents.FleetStop")),
    (
        "Agents",
        (
            "agents.Agent",
            "agents.Capabilities",
            "agents.Permissions",
            "knowledge.StateKey",
            "knowledge.Handoff",
            "knowledge.StateChange",
        ),
    ),
    ("Board", ("tasks.Task", "tasks.Issue", "tasks.Comment", "tasks.Activity", "tasks.Wake", "tasks.Counter")),
    ("Access", ("agents.Key", "agents.Membership", "agents.PlatformSettings", "agents.Workspace")),
    (
        "Record",
        (
            "mcp.AuditRow",
            "agents.PolicyChange",
            "mcp.Session",
            "mcp.AuditSeal",
            "mcp.AuditBlock",
            "agents.Version",
        ),
    ),
)

sign_ins = Limiter({"login": Bucket(60)})  # a minute and address, as for everybody without a key
_principals: WeakKeyDictionary[HttpRequest, Who | None] = WeakKeyDictionary()


def principal(request: HttpRequest) -> Who | None:
    """The signed-in person in the chosen workspace, read once a request; None without a membership."""
    if request not in _principals:
        _principals[request] = resolve(request)
    return _principals[request]


def resolve(request: HttpRequest) -> Who | None:
    """The membership chosen in the session, else the first one."""
    user = request.user
    if not user.is_authenticated:
        return None
    chosen = request.session.get(WORKSPACE)
    return (who_for_user(user, chosen) if chosen else None) or who_for_user(user)


class Site(AdminSite):
    """`/admin/` for the people of a workspace."""

    site_title = "DuDuClaw"
    site_header = "DuDuClaw"
    index_title = "What needs you"
    site_url = None
    login_form = AuthenticationForm
    empty_value_display = "-"

    def has_permission(self, request: HttpRequest) -> bool:
        """Any role opens the admin; what it shows is one workspace."""
        return principal(request) is not None

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The form; guesses from one address are slowed down."""
        if request.method == "POST":
            wait = sign_ins.check(request.META.get("REMOTE_ADDR", ""), "login", clock.now().timestamp())
            if wait is not None:
                says = f"Too many attempts. Try again in {wait} seconds."
                return HttpResponse(says, status=429, content_type="text/plain", headers={"Retry-After": str(wait)})
        return super().login(request, extra_context)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        own: list[URLPattern | URLResolver] = [
            path("step-up/", self.admin_view(self.step_up), name="step_up"),
            path("workspace/", self.admin_view(require_POST(self.choose_workspace)), name="workspace"),
        ]
        return own + super().get_urls()

    def each_context(self, request: Any) -> dict[str, Any]:
        """Every page knows whose workspace it shows and which others the person may open."""
        who = principal(request)
        mine = Membership.objects.system().filter(user_id=who.user).select_related("workspace") if who else ()
        return {**super().each_context(request), "who": who, "memberships": list(mine)}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """By `SECTIONS`; a model that stands in none comes last, under its application's name."""
        if app_label:
            return super().get_app_list(request, app_label)
        apps = super().get_app_list(request)
        found = {entry["model"]._meta.label: entry for app in apps for entry in app["models"]}
        made = []
        for title, labels in SECTIONS:
            made.append(self.section(title, [found.pop(label) for label in labels if label in found]))
        made += [
            self.section(app["name"], [e for e in app["models"] if e["model"]._meta.label in found]) for app in apps
        ]
        return [section for section in made if section["models"]]

    def section(self, title: str, entries: list[Any]) -> dict[str, Any]:
        """One group of the first page, in the shape that the admin's templates read."""
        anchor = title.lower().replace(" ", "-")
        return {
            "name": title,
            "app_label": anchor,
            "app_url": f"{reverse('admin:index')}#{anchor}",
            "has_module_perms": True,
            "models": entries,
        }

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The first page, with what waits beside it."""
        who = principal(request)
        return super().index(request, {**(extra_context or {}), **(waiting(who) if who else {})})

    def step_up(self, request: HttpRequest) -> HttpResponse:
        """Ask for the password again; see `duduclaw.stepup`."""
        return stepup.view(request, {**self.each_context(request), "title": "Confirm that it is you"})

    def choose_workspace(self, request: HttpRequest) -> HttpResponse:
        """Open another workspace of the same person; an unknown one changes nothing."""
        chosen = request.POST.get("workspace", "")
        if who_for_user(request.user, chosen or "-"):  # type: ignore[arg-type]
            request.session[WORKSPACE] = chosen
        return redirect("admin:index")


def waiting(who: Who) -> dict[str, Any]:
    """What a person should look at: questions by their end, stops that stand, keys about to end."""
    now = clock.now()
    questions = Approval.objects.for_who(who).open(now).select_related("agent")
    keys = Key.objects.for_who(who).filter(revoked_at=None, expires_at__gt=now, expires_at__lte=now + KEY_WARNING)
    return {
        "waiting": True,
        "pending": questions.order_by("expires_at")[:5],
        "pending_count": questions.count(),
        "stops": FleetStop.objects.for_who(who).filter(released_at=None),
        "ending_keys": keys.order_by("expires_at")[:5],
    }
