"""Every route and method of REST, from the URL resolver: a new route joins the matrices by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from duduclaw.api import urls
from duduclaw.api.views.root import Absent, Schema

# A body that reaches the look-up of the object; a route that is not named gets {}.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("agents", "post"): {"id": "newcomer", "display_name": "Newcomer"},
    ("agent", "patch"): {"role": "typist"},
    ("keys", "post"): {"kind": "external", "scopes": ["wiki:read"]},
    ("approval-decide", "post"): {"decision": "deny"},
    ("tasks", "post"): {"title": "Count the sheep"},
    ("task", "patch"): {"title": "Count the sheep"},
    ("task-reject", "post"): {"feedback": "one is missing"},
    ("issues", "post"): {"title": "The gate squeaks"},
    ("issue", "patch"): {"status": "done"},
    ("issue-comments", "post"): {"body": "Oiled."},
    ("settings", "patch"): {"integrations": {"github": True}},
    ("fleet-stop", "post"): {"scope": "all", "reason": "drill"},
    ("fleet-release", "post"): {"scope": "all"},
}


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one address."""

    name: str
    template: str
    method: str
    parameters: tuple[str, ...]

    @property
    def body(self) -> dict[str, Any] | None:
        """What is sent."""
        return None if self.method in ("get", "delete") else BODIES.get((self.name, self.method), {})

    def path(self, ident: str = "") -> str:
        """The address with an id in it."""
        made = self.template
        for parameter in self.parameters:
            made = made.replace(f"<str:{parameter}>", ident)
        return f"/api/{made}"


def every() -> Iterator[Route]:
    """All routes that views serve."""
    for pattern in urls.urlpatterns:
        view = getattr(pattern.callback, "cls", None)
        if view is None or view in (Absent, Schema):
            continue
        for method in view().allowed_methods:
            if method != "OPTIONS":
                template = str(pattern.pattern)
                yield Route(str(pattern.name), template, method.lower(), tuple(pattern.pattern.converters))
