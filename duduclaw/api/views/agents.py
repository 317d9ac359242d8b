"""Agents: identity and rights, what each sees, and why."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions import agents, policy
from agents.actions.fields import fault, refuse_unknown
from agents.models import Agent, Key
from duduclaw.api.docs import documented
from duduclaw.api.paging import NamePages
from duduclaw.api.resource import Resource, take_version
from duduclaw.api.serializers.agents import AgentDraft, AgentPatch, AgentSerializer, Explanation, ToolSet
from mcp import explain
from mcp.errors import InvalidArguments

NEW = frozenset({"id", "display_name", "role", "department", "reports_to", "status", "preset", "capabilities",
                 "permissions"})  # fmt: skip
KEY = {"key": "Judge the holder of this key (its id) instead of the agent with scope admin."}


class Agents(Resource):
    """All agents of the workspace."""

    serializer_class = AgentSerializer
    pagination_class = NamePages
    event = "agent_created"

    @documented(
        "List agents by name; removed ones only with status=removed.",
        AgentSerializer(many=True),
        query={"status": "Only agents of this status.", "department": "Only agents of this department."},
    )
    def get(self, request: Request) -> Response:
        wanted = self.filters("status", "department")
        rows = Agent.objects.for_who(self.who).filter(**wanted)
        if "status" not in wanted:
            rows = rows.exclude(status=Agent.Status.REMOVED)
        return self.page(rows.select_related("reports_to", "capabilities", "permissions"))

    @documented("Create an agent.", AgentSerializer, status=201, body=AgentDraft, also=(409, 422))
    def post(self, request: Request) -> Response:
        given = self.body
        refuse_unknown("", given, NEW)
        for name in ("id", "display_name"):
            if not given.get(name):
                raise InvalidArguments(f"Missing required parameter: {name}", name)
        made = self.changed(lambda: created(self, given), agent=str(given["id"])[:64])
        return Response(self.get_serializer(made).data, status=201)


def created(view: Resource, given: dict[str, Any]) -> Agent:
    """The new agent; a fault of its name is one of the field `id`."""
    name = given.pop("id")
    try:
        return agents.create_agent(by=view.who, name=name, reuse=True, **given)
    except InvalidArguments as error:
        if error.parameter != "name":
            raise
        raise fault("id", error.message.removeprefix("name: ")) from None


class OneAgent(Resource):
    """One agent."""

    serializer_class = AgentSerializer

    def find(self, name: str) -> Agent:
        """The agent of that name, removed ones not."""
        rows = Agent.objects.for_who(self.who).exclude(status=Agent.Status.REMOVED).filter(name=name)
        found: Agent = self.one(rows.select_related("reports_to", "capabilities", "permissions"))
        return found


class Detail(OneAgent):
    """Read, change, remove."""

    @documented("Read an agent.", AgentSerializer, also=(404,))
    def get(self, request: Request, name: str) -> Response:
        return Response(self.get_serializer(self.find(name)).data)

    @documented(
        "Change an agent: objects merge per key, lists are replaced whole.",
        AgentSerializer,
        body=AgentPatch,
        also=(404, 409),
    )
    def patch(self, request: Request, name: str) -> Response:
        changes = self.body
        version = take_version(changes)
        row = self.find(name)
        done = self.changed(
            lambda: policy.update_agent(row, by=self.who, changes=changes, version=version), changes=changes
        )
        return Response(self.get_serializer(done).data)

    @documented("Remove an agent: it goes to the trash and its name stays reserved.", AgentSerializer, also=(404,))
    def delete(self, request: Request, name: str) -> Response:
        row = self.find(name)
        return Response(self.get_serializer(self.changed(lambda: agents.remove_agent(row, by=self.who))).data)


class Restore(Resource):
    """A removed agent."""

    serializer_class = AgentSerializer

    @documented("Take an agent out of the trash.", AgentSerializer, also=(404, 409))
    def post(self, request: Request, name: str) -> Response:
        trash = Agent.objects.for_who(self.who).filter(status=Agent.Status.REMOVED, name=name)
        row = self.one(trash.order_by("-removed_at"))
        return Response(self.get_serializer(self.changed(lambda: agents.restore_agent(row, by=self.who))).data)


class Judged(OneAgent):
    """An agent, or the holder of one key, as the kernel judges it."""

    def key(self) -> Key | None:
        """The key named in the address."""
        ident = self.query.get("key")
        return self.one(Key.objects.for_who(self.who).filter(pk=ident).select_related("agent")) if ident else None


class Tools(Judged):
    """The catalogue as an agent sees it."""

    @documented("What an agent sees, what is hidden by which gate, and what the list costs.", ToolSet, query=KEY,
                also=(404,))  # fmt: skip
    def get(self, request: Request, name: str) -> Response:
        return Response(explain.toolset(self.find(name), self.key()))


class Explain(Judged):
    """One tool and one agent."""

    @documented(
        "Why an agent sees a tool or not, and the smallest set of edits that opens it.",
        Explanation,
        query={"tool": "Name of the tool; required.", **KEY},
        also=(400, 404),
    )
    def get(self, request: Request, name: str) -> Response:
        agent, tool = self.find(name), self.query.get("tool", "")
        if not tool:
            raise InvalidArguments("Missing required parameter: tool", "tool")
        return Response(explain.explain(agent, tool, self.key()))
