"""The admin in a real browser under the pages' own policy: no message in the console, nothing wider than the screen."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import Browser, Page, Request, sync_playwright

from agents.models import Key
from agents.tests.admin_house import PASSWORD, House, house, question
from mcp.models import AuditRow
from tasks.models import Task
from tests.live import Live
from tests.rows import row_for
from tests.services import chromium, need

pytestmark = pytest.mark.browser
NASTY = "<img src=x onerror=alert(1)>\u202e{{7*7}}"


@dataclass
class Walk:
    """One browser window and what its console said."""

    page: Page
    base: str
    said: list[str] = field(default_factory=list)

    def heard(self, request: Request) -> None:
        """A page asks its own server only."""
        if not request.url.startswith(self.base):
            self.said.append(f"went to {request.url}")

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.base}{path}", wait_until="networkidle")
        return self.page

    def wide(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@contextmanager
def window(browser: Browser, base: str, theme: Any, width: int) -> Iterator[Walk]:
    """A signed-in window."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce")
    walk = Walk(context.new_page(), base)
    walk.page.on("console", lambda message: walk.said.append(message.text))
    walk.page.on("pageerror", lambda error: walk.said.append(str(error)))
    walk.page.on("dialog", lambda dialog: walk.said.append(f"dialog {dialog.message}"))
    walk.page.on("requestfailed", lambda request: walk.said.append(f"failed {request.url}"))
    walk.page.on("request", walk.heard)
    walk.open("/admin/")
    walk.page.fill("#id_username", "admin")
    walk.page.fill("#id_password", PASSWORD)
    walk.page.click("input[type=submit]")
    walk.page.wait_for_selector("#logout-form")
    walk.page.wait_for_load_state("networkidle")
    yield walk
    context.close()


def in_browser(work: Any) -> Any:
    """Run `work(browser)` in a thread: the loop that drives the browser must not meet the ORM of the test."""

    def run() -> Any:
        with sync_playwright() as player:
            browser = player.chromium.launch(executable_path=need("Chromium", chromium()), args=["--no-sandbox"])
            try:
                return work(browser)
            finally:
                browser.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


@pytest.fixture(name="home_of")
def build_house(mcp_server: Live) -> Iterator[House]:
    made = house()
    for model in (Task, AuditRow):
        row_for(model, made.acme, NASTY)
    question(made.acme.owner, summary=NASTY, arguments=f'{{"q":"{NASTY}"}}')
    yield made
    connections.close_all()


def paths(home_of: House) -> list[str]:
    task, row = Task.objects.system().get(), AuditRow.objects.get()
    asked = home_of.acme.owner.approvals.get()
    return [
        "/admin/",
        "/admin/agents/agent/",
        f"/admin/agents/agent/{home_of.acme.owner.pk}/change/",
        f"/admin/agents/agent/{home_of.acme.owner.pk}/history/",
        "/admin/agents/approval/",
        f"/admin/agents/approval/{asked.pk}/change/",
        f"/admin/agents/approval/decide/?decision=approve&ids={asked.pk}",
        "/admin/agents/key/add/",
        "/admin/agents/fleetstop/add/",
        "/admin/mcp/auditrow/",
        f"/admin/mcp/auditrow/{row.pk}/change/",
        f"/admin/tasks/task/{task.pk}/change/",
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_silent_and_fit(home_of: House, mcp_server: Live, theme: str) -> None:
    addresses = paths(home_of)

    def work(browser: Browser) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for width in (1440, 390):
            with window(browser, mcp_server.url, theme, width) as walk:
                for path in addresses:
                    walk.open(path)
                    found[f"{width} {path}"] = (list(walk.said), max(walk.wide(), 0))
                    walk.said.clear()
        return found

    found = in_browser(work)
    assert len(found) == 2 * len(addresses)
    assert {path: seen for path, seen in found.items() if seen != ([], 0)} == {}


def test_theme_follows_the_system_and_the_switch(home_of: House, mcp_server: Live) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    link = "getComputedStyle(document.querySelector('#content-main a')).color"

    def work(browser: Browser) -> list[tuple[str, str]]:
        seen = []
        for theme in ("light", "dark"):
            with window(browser, mcp_server.url, theme, 1440) as walk:
                page = walk.open("/admin/")
                for _ in range(3):  # auto, then the two fixed themes
                    seen.append((page.evaluate(colour), page.evaluate(link)))
                    page.click("#user-tools .theme-toggle")
                assert walk.said == []
        return seen

    seen = in_browser(work)
    light, dark = ("rgb(246, 245, 241)", "rgb(11, 107, 99)"), ("rgb(20, 21, 23)", "rgb(92, 201, 187)")
    assert seen[0] == light
    assert seen[3] == dark
    assert set(seen) == {light, dark}


def test_widgets_work_under_the_policy(home_of: House, mcp_server: Live) -> None:
    """Step-up, the picker, the calendar, and a key that is shown once, all by clicks."""

    def work(browser: Browser) -> tuple[list[str], str]:
        with window(browser, mcp_server.url, "light", 1440) as walk:
            page = walk.open("/admin/agents/key/add/")
            page.fill("#id_password", PASSWORD)
            page.click("input[type=submit]")
            page.click(".field-agent .select2-selection")
            page.click(".select2-results__option:has-text('owner')")
            page.click(".field-expires_at .date-icon")
            page.click(".calendarbox .calendar-shortcuts a:has-text('Tomorrow')")
            page.fill("#id_expires_at_1", "12:00:00")
            page.click("input[name=_save]")
            return walk.said, page.inner_text("#key")

    said, text = in_browser(work)
    assert said == []
    made = Key.objects.system().order_by("-created_at").first()
    assert text.startswith(made.prefix)
    assert made.agent == home_of.acme.owner
