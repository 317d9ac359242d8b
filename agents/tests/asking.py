"""People who ask and people who answer: what the tests of approvals share."""

from collections.abc import Callable
from typing import Any

import pytest

from agents.actions import approvals
from agents.models import Approval, Capabilities
from agents.principals import forget
from mcp import registry
from mcp.calls import Answer, CallRequest, call
from mcp.errors import Refused
from tests.build import Company, company, key
from tests.testtools import probe


def asking_company() -> Company:
    """The owner must ask for probe_ask, and its probe_scoped needs a grant."""
    forget()
    made = company()
    Capabilities.objects.filter(agent=made.owner).update(
        approval_required_tools=["probe_ask"], scoped_tools=["probe_scoped"]
    )
    made.tokens["manager"] = key(made.space, "operator", role="manager", client_id="manager")[1]
    made.tokens["viewer"] = key(made.space, "operator", role="viewer", client_id="viewer")[1]
    return made


def ask_for(people: Company, person: str = "owner", **over: Any) -> Answer:
    """A capability request as it comes back."""
    arguments = {"tool": "probe_scoped", "reason": "needed now", **over}
    return call(CallRequest(lambda: people.who(person), "capability_request", arguments))


def make_call(people: Company, arguments: dict[str, Any] | None = None, **request: Any) -> Answer:
    """The approval-listed tool."""
    with registry.temporarily(probe("probe_ask")):
        return call(CallRequest(lambda: people.who("owner"), "probe_ask", arguments or {}, **request))


def question() -> Approval:
    found: Approval = Approval.objects.system().order_by("requested_at", "id").last()
    return found


def decide(people: Company, decision: str = "approve", by: str = "operator", **over: Any) -> Approval:
    return approvals.decide(question(), by=people.who(by), decision=decision, **over)


def refused(act: Callable[[], Any]) -> str:
    """The class of the refusal."""
    with pytest.raises(Refused) as caught:
        act()
    return caught.value.code
