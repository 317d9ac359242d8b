"""The scopes by name and number."""

from mcp import scopes

ORIGINAL = (
    "memory:read memory:write wiki:read wiki:write messaging:send identity:read odoo:read odoo:write odoo:execute "
    "google:read google:write notion:read notion:write github:read github:write fork:execute os:native skill:execute "
    "recording mail:read mail:send db:read files:read team:handoff discovery:execute admin"
)
OF_WORKSPACES = "issues:read issues:write comments:read comments:write dashboard:read agents:write autopilot:run"


def test_there_are_33() -> None:
    assert set(ORIGINAL.split()) | set(OF_WORKSPACES.split()) == scopes.SCOPES
    assert len(scopes.SCOPES) == 33


def test_twelve_may_be_given_to_clients() -> None:
    assert set(OF_WORKSPACES.split()) == scopes.AACWORKFLOW
    assert scopes.GRANTABLE == scopes.AACWORKFLOW | {
        "memory:read", "memory:write", "wiki:read", "wiki:write", "messaging:send",
    }  # fmt: skip


def test_what_a_viewer_holds_is_no_scope_that_a_key_can_carry() -> None:
    assert scopes.VIEWER not in scopes.SCOPES
    assert len(scopes.EXTERNAL_TOOLS) == 7
