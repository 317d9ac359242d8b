"""The 33 scopes. A tool or key that names another one fails at its declaration."""

MEMORY_READ, MEMORY_WRITE = "memory:read", "memory:write"
WIKI_READ, WIKI_WRITE = "wiki:read", "wiki:write"
MESSAGING_SEND = "messaging:send"
ADMIN = "admin"

AACWORKFLOW = frozenset(
    {
        "issues:read",
        "issues:write",
        "comments:read",
        "comments:write",
        "dashboard:read",
        "agents:write",
        "autopilot:run",
    }
)
GRANTABLE = frozenset({MEMORY_READ, MEMORY_WRITE, WIKI_READ, WIKI_WRITE, MESSAGING_SEND}) | AACWORKFLOW
SCOPES = GRANTABLE | {
    "identity:read",
    "odoo:read",
    "odoo:write",
    "odoo:execute",
    "google:read",
    "google:write",
    "notion:read",
    "notion:write",
    "github:read",
    "github:write",
    "fork:execute",
    "os:native",
    "skill:execute",
    "recording",
    "mail:read",
    "mail:send",
    "db:read",
    "files:read",
    "team:handoff",
    "discovery:execute",
    ADMIN,
}
# Not on the wire: what a viewer holds in place of `admin`. It opens the read-only tools whatever their scope.
VIEWER = "viewer"
EXTERNAL_TOOLS = frozenset(
    {"memory_search", "memory_store", "memory_read", "wiki_read", "wiki_write", "wiki_search", "send_message"}
)
