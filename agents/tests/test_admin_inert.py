"""T45 and T44 in the admin: what agents and people write is shown, never obeyed. Generated for every text column."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.db import models
from django.urls import reverse

from agents.models import Agent, Capabilities
from agents.tests.admin_house import House, house
from duduclaw.lib import redact
from duduclaw.lib.visible import line, visible
from mcp import audit
from mcp.models import AuditRow
from tests.rows import is_text, row_for

pytestmark = pytest.mark.django_db

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}{% debug %}",
    "{0.__class__}%s%(name)s",
    "=HYPERLINK(1)",
    "\u202eevil\u202c\u2066x\u2069",
    "a\u200bb\u200dc\ufeffd",
    "line\u2028break\x1b[31m\x07\r",
    "</textarea></title><b>x",
)
ALL = "|".join(PAYLOADS)
PAIRS = ["|".join(pair) for pair in zip(PAYLOADS[::2], PAYLOADS[1::2], strict=True)]
HIDDEN = "\u202e\u202c\u2066\u2069\u200b\u200d\ufeff\u2028\x1b\x07"
# One row an agent or workspace: these have tests of their own below, or hold no text.
SINGLE = {
    "agents.Agent", "agents.Capabilities", "agents.Permissions", "agents.Workspace", "agents.PlatformSettings",
    "agents.Version", "agents.Key",
}  # fmt: skip
MODELS = [model for model in admin.site._registry if model._meta.label not in SINGLE]


class Page(HTMLParser):
    """Collects what a browser would run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.live: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        names = {name: value or "" for name, value in attrs}
        inline = tag == "script" and not names.get("src") and names.get("type") != "application/json"
        handlers = [name for name in names if name.startswith("on") or name == "style"]
        foreign = [value for value in names.values() if value.strip().lower().startswith("javascript:")]
        if inline or handlers or (foreign and tag != "input") or names.get("src") == "x":
            self.live.append(f"{tag} {names}")


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def check(text: str) -> None:
    """The page runs nothing of the payloads and shows no hidden character."""
    assert Page(text).live == []
    assert not set(HIDDEN) & set(text)
    assert "alert(1)</script>" not in text
    assert "<b>x" not in text


@pytest.mark.parametrize("payload", [*PAIRS, ALL], ids=range(len(PAIRS) + 1))
def test_T45_admin_every_text_column(home_of: House, payload: str) -> None:
    client = home_of.client("admin")
    for model in MODELS:
        row = row_for(model, home_of.acme, payload)
        base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for address in (base, f"{base}{row.pk}/change/", *([f"{base}{row.pk}/history/"] if payload == ALL else [])):
            answer = client.get(address)
            assert answer.status_code == 200, address
            check(answer.content.decode())


def test_T45_admin_templates_in_texts_are_shown_as_they_are(home_of: House) -> None:
    for model in MODELS:
        if not any(is_text(field) and field.max_length is None for field in model._meta.fields):
            continue
        row = row_for(model, home_of.acme, "{{7*7}}{% debug %}")
        base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        page = home_of.client("admin").get(f"{base}{row.pk}/change/").content.decode()
        assert "{{7*7}}{% debug %}" in page
        assert "49" not in page.replace(str(row.pk), "").split("<main")[1].split("{% debug")[0][-200:]


def test_T45_admin_an_agents_own_texts(home_of: House) -> None:
    agent = home_of.acme.owner
    Agent.objects.system().filter(pk=agent.pk).update(display_name=ALL[:120], role=ALL[:64], department=ALL[-64:])
    Capabilities.objects.filter(agent=agent).update(denied_tools=list(PAYLOADS), db_sources=[ALL])
    for role in ("viewer", "operator"):
        client = home_of.client(role)
        for address in ("/admin/", "/admin/agents/agent/", "/admin/agents/capabilities/"):
            check(client.get(address).content.decode())
        page = client.get(f"/admin/agents/agent/{agent.pk}/change/").content.decode()
        assert Page(page).live == []
        assert "<b>x" not in page


def test_T45_admin_action_pages_and_messages(home_of: House) -> None:
    client, task = home_of.client("operator"), row_for(admin_model("tasks.Task"), home_of.acme, ALL)
    form = {"action": "reject", "_selected_action": [task.pk]}
    check(client.post("/admin/tasks/task/", form).content.decode())
    sure = {**form, "confirmed": "yes", "reason": ALL}
    check(client.post("/admin/tasks/task/", sure, follow=True).content.decode())
    stop = row_for(admin_model("agents.FleetStop"), home_of.acme, ALL, released_at=None)
    check(client.get("/admin/").content.decode())
    release = {"action": "release", "_selected_action": [stop.pk]}
    check(client.post("/admin/agents/fleetstop/", release).content.decode())


def test_T45_admin_search_terms_and_addresses(home_of: House) -> None:
    client = home_of.client("admin", stepped_up=True)
    for payload in (PAYLOADS[1], ALL):
        for model in admin.site._registry:
            base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            answer = client.get(base, {"q": payload})
            assert Page(answer.content.decode()).live == []
        for address in ("/admin/step-up/", "/admin/agents/approval/decide/"):
            page = client.get(address, {"next": payload, "ids": payload, "decision": payload}, follow=True)
            assert Page(page.content.decode()).live == []


def test_T51_admin_a_secret_in_arguments_is_masked(home_of: House) -> None:
    secret = "ghp_" + "a1B2" * 9
    row = audit.call_row(home_of.who("owner"), "web_fetch", "ok", "", arguments=redact.summary({"url": secret}))
    audit.insert(row)
    client = home_of.client("viewer")
    found = AuditRow.objects.get(uid=row.uid)
    for address in ("/admin/mcp/auditrow/", f"/admin/mcp/auditrow/{found.pk}/change/"):
        assert secret not in client.get(address).content.decode()


def admin_model(name: str) -> type[models.Model]:
    return next(model for model in admin.site._registry if model._meta.label == name)


def test_nothing_marks_text_as_safe() -> None:
    """The tree without tests holds no `mark_safe`, no `|safe`, no format_html that formats a text of its own."""
    root = Path(settings.BASE_DIR)
    code = [path for app in ("agents", "tasks", "mcp", "duduclaw") for path in (root / app).rglob("*.py")]
    for path in code:
        if "tests" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        assert "mark_safe" not in text, path
        assert text.count("format_html(") == text.count("format_html('") + text.count("import format_html("), path


def test_templates_hold_no_inline_code() -> None:
    """What the policy of the pages would block, and what would let a text through unescaped."""
    for path in (Path(settings.BASE_DIR) / "templates").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert Page(text.replace("{% url", "").replace("{% static", "")).live == [], path
        for word in ("|safe", "autoescape off", "hx-on", "<style", "javascript:"):
            assert word not in text, (path, word)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("中文 日本語", "中文 日本語"),
        ("a\u202eb", "a[U+202E]b"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x00\x1b\x7f\u2028\ufeff", "[U+0000][U+001B][U+007F][U+2028][U+FEFF]"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_line_is_cut_and_has_no_breaks() -> None:
    assert line("a\nb") == "a ⏎ b"
    assert line("x" * 200, 10) == "x" * 10 + "…"
    assert "\n" not in line("\n" * 500)
