"""System checks: each fault of a declaration is named by an id before anything runs."""

from importlib import metadata
from typing import Any

import pytest
from django.apps import apps
from django.core import checks as django_checks
from django.db import models
from django.test.utils import isolate_apps

from agents import checks, versions
from agents.actions.presets import PRESETS
from agents.models import Agent, Workspace
from duduclaw.lib.owned import manager
from mcp import registry


def ids(found: list[django_checks.CheckMessage]) -> list[str]:
    return [str(message.id) for message in found]


def test_the_tree_passes() -> None:
    assert [m for m in django_checks.run_checks() if m.level >= django_checks.WARNING] == []


def test_the_checks_are_registered() -> None:
    registered = django_checks.registry.registry.get_checks()
    assert {checks.tenancy, checks.deciding, checks.name_of_mcp, checks.tools} <= set(registered)


def judged(model: type[models.Model], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(checks, "own_models", lambda configs: [model])
    return ids(checks.tenancy())


@isolate_apps("agents")
def test_a_model_without_a_workspace_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loose(models.Model):  # noqa: DJ008
        title = models.TextField()

        class Meta:
            app_label = "agents"

    assert judged(Loose, monkeypatch) == ["agents.E001"]
    monkeypatch.setitem(checks.WITHOUT_WORKSPACE, "agents.Loose", "a test")
    assert judged(Loose, monkeypatch) == []


@isolate_apps("agents")
def test_a_workspace_directly_or_through_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Owned(models.Model):  # noqa: DJ008
        workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
        objects = manager()

        class Meta:
            app_label = "agents"

    class Part(models.Model):  # noqa: DJ008
        agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")

        class Meta:
            app_label = "agents"

    class Open(models.Model):  # noqa: DJ008
        workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")

        class Meta:
            app_label = "agents"

    assert judged(Owned, monkeypatch) == []
    assert judged(Part, monkeypatch) == []
    assert judged(Open, monkeypatch) == ["agents.E002"]


def test_every_name_on_the_list_is_a_model_that_needs_it() -> None:
    models_now = {model._meta.label: model for model in checks.own_models(None)}
    for label in checks.WITHOUT_WORKSPACE:
        assert label in models_now
        assert not checks.has(models_now[label], "workspace")


def test_the_map_of_triggers_names_real_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = versions.Deciding("agent", "id", ("status", "no_such_column"))
    monkeypatch.setitem(versions.DECIDING, "agents_agent", rule)
    monkeypatch.setitem(versions.DECIDING, "no_such_table", rule)
    assert ids(checks.deciding()) == ["agents.E003", "agents.E003"]


def test_the_client_library_beside_the_app_is_mcp_E001(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.name_of_mcp() == []
    monkeypatch.setattr(metadata, "version", lambda name: "1.0")
    assert ids(checks.name_of_mcp()) == ["mcp.E001"]


def fake(**over: Any) -> registry.Tool:
    some = next(iter(registry.every()))
    return registry.Tool(**{**{name: getattr(some, name) for name in some.__dataclass_fields__}, **over})


def test_a_tool_that_contradicts_itself_and_one_that_masks_nothing() -> None:
    both = fake(name="zz_contradicts", read_only=True, destructive=True)
    masks = fake(name="zz_masks", redact=frozenset({"no_such_parameter"}))
    with registry.temporarily(both, masks):
        assert [i for i in ids(checks.tools()) if i.startswith("mcp.E")] == ["mcp.E002", "mcp.E003"]


def test_a_preset_that_names_no_tool_or_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "worker", ("no_such_tool",))
    assert "mcp.W011" in ids(checks.tools())
    monkeypatch.setitem(PRESETS, "worker", ("*",))
    many = [fake(name=f"zz_tool_{number}") for number in range(60)]
    with registry.temporarily(*many):
        assert "mcp.W010" in ids(checks.tools())


def test_own_models_are_found_for_one_app() -> None:
    found = checks.own_models([apps.get_app_config("agents"), apps.get_app_config("auth")])
    assert Agent in found
    assert {model._meta.app_label for model in found} == {"agents"}
