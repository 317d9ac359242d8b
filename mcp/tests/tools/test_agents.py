"""assign_issue_to_agent: one wake for one assignment. Who may call it stands in the table of the issue tools."""

import pytest

from mcp.tests.tools.issues_made import made
from mcp.tests.tools.transports import rows_of, via_mcp, with_clients
from tasks.models import Issue, Wake
from tests.build import Company, company

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not; operator, viewer; external client with all issue scopes, reader."""
    return with_clients(company())


def test_the_same_assignment_again_answers_the_same_wake(people: Company) -> None:
    arguments = {"issue_id": made(people)["id"], "agent_id": "colleague"}
    first = via_mcp(people, "external", "assign_issue_to_agent", arguments).body
    wake = Wake.objects.system().get()
    assert (first["wake_id"], first["wake_state"]) == (wake.id, "queued")
    assert (wake.agent, wake.requested_by, wake.state) == (people.colleague, "client", "queued")
    assert "does not run wakes yet" in first["note"]
    assert first["issue"]["assignee"] == "colleague"
    before = rows_of(Issue, Wake)
    assert via_mcp(people, "owner", "assign_issue_to_agent", arguments).body == first
    assert rows_of(Issue, Wake) == before


def test_another_agent_gets_a_wake_of_its_own(people: Company) -> None:
    issue = made(people)
    wakes = {
        name: via_mcp(people, "operator", "assign_issue_to_agent", {"issue_id": issue["id"], "agent_id": name}).body
        for name in ("colleague", "stranger")
    }
    assert wakes["colleague"]["wake_id"] != wakes["stranger"]["wake_id"]
    assert Issue.objects.system().get().agent == people.stranger
