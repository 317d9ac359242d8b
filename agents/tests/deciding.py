"""What the tests of versions share: one row of every table that decides, and another value for any column."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, models, transaction

from agents.models import Agent, Approval, FleetStop, Grant, Key, PlatformSettings, Role, Version, Workspace
from agents.principals import BadKey, who_for_agent, who_for_key, who_for_user
from agents.tests.admin_house import person, question
from agents.versions import DECIDING
from duduclaw.lib import clock
from mcp.policy import Who
from tests.build import Company, company, key

MODELS: dict[str, type[models.Model]] = {model._meta.db_table: model for model in apps.get_models()}
# A key is either an agent's or not, which the database checks: the kind changes within its half.
KINDS = {"agent": "run", "run": "agent", "operator": "external", "external": "operator"}
SECTIONS = {"github": True, "enabled": True, "keys": {"read": 1}, "external": {"read": 1}}
LONG = timedelta(days=90)  # what ends at all has ended that long before

Pair = tuple[str, str]


@dataclass
class Scene:
    """A company with every kind of principal; `rows[table]` are the rows whose columns the tests change."""

    team: Company
    elsewhere: Workspace
    writer: Agent
    user: User
    nobody: User
    approval: Approval
    rows: dict[str, list[Any]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


def scene() -> Scene:
    """owner has a grant and is stopped; the person is a viewer; elsewhere is empty; writer has no rows of rights."""
    team = company()
    space, now = team.space, clock.now()
    writer = Agent.objects.create(workspace=space, name="writer", name_key="writer", display_name="Writer")
    made = Scene(
        team, Workspace.objects.create(slug="elsewhere", name="Elsewhere"), writer,
        person(space, "viewer", Role.VIEWER), User.objects.create_user("nobody"), question(writer),
    )  # fmt: skip
    life = {"granted_at": now, "expires_at": now + timedelta(hours=1)}
    granted = {"tool": "web_fetch", "granted_by": Grant.Source.OPERATOR, "approval": question(team.owner)}
    made.rows["agents_grant"] = [Grant.objects.create(workspace=space, agent=team.owner, **life, **granted)]
    stop = {"scope": FleetStop.Scope.AGENT, "target": "owner", "stopped_at": now}
    made.rows["agents_fleetstop"] = [FleetStop.objects.create(workspace=space, **stop)]
    made.rows["agents_agent"] = [team.owner]
    made.rows["agents_capabilities"] = [team.owner.capabilities]
    made.rows["agents_permissions"] = [team.owner.permissions]
    made.rows["agents_platformsettings"] = [PlatformSettings.objects.system().get(workspace=space)]
    made.rows["agents_membership"] = [made.user.memberships.get()]
    made.rows["auth_user"] = [made.user]
    made.rows["agents_key"] = give_keys(made)
    return made


def give_keys(made: Scene) -> list[Key]:
    """A key of every kind."""
    space = made.team.space
    keys = {
        "agent": key(space, "agent", agent=made.team.owner),
        "run": key(space, "run", agent=made.team.owner, task_id="a task"),
        "operator": key(space, "operator", client_id="operator", role=Role.OPERATOR),
        "external": key(space, "external", client_id="client", scopes_held=["wiki:read"]),
    }
    made.tokens = {name: token for name, (_, token) in keys.items()}
    return [row for row, _ in keys.values()]


def column_of(table: str, column: str) -> Any:
    """The model field behind a column."""
    return next(found for found in MODELS[table]._meta.concrete_fields if found.column == column)


def another(made: Scene, row: Any, column: str) -> Any:
    """A value that the column takes and does not have."""
    known, now = column_of(row._meta.db_table, column), getattr(row, column)
    if known.is_relation:
        return related(made, known.related_model, now)
    if known.choices:
        return KINDS.get(now) or next(value for value, _ in known.choices if value != now)
    if isinstance(known, models.JSONField):
        return {dict: SECTIONS, list: ["mail_send"]}.get(known.default, None if now is False else False)
    if isinstance(known, models.BooleanField):
        return not now
    if isinstance(known, models.DateTimeField):
        return now - LONG if now else clock.now()
    return now + 1 if isinstance(known, models.IntegerField) else f"not {now}"[: known.max_length]


def rows_with(made: Scene, table: str, column: str) -> list[Any]:
    """The rows whose column can have another value: keys of nobody get no agent."""
    rows = made.rows[table]
    return [row for row in rows if row.agent_id] if (table, column) == ("agents_key", "agent_id") else rows


def related(made: Scene, model: type[models.Model], now: Any) -> Any:
    """The id of another row that nothing points at yet."""
    spare: dict[type[models.Model], models.Model] = {
        Workspace: made.elsewhere,
        Agent: made.writer,
        User: made.nobody,
        Approval: made.approval,
    }
    assert spare[model].pk != now
    return spare[model].pk


def deciding_pairs() -> list[Pair]:
    """Every (table, column) of the map."""
    return [(table, column) for table, rule in DECIDING.items() for column in rule.columns]


def other_pairs() -> list[Pair]:
    """Every other column of these tables, but for the ids by which rows are found."""
    return [
        (table, str(known.column))
        for table, rule in DECIDING.items()
        for known in MODELS[table]._meta.concrete_fields
        if known.column not in rule.columns and known.column != rule.ref and not known.primary_key
    ]


def numbers() -> dict[Pair, int]:
    """(kind, ref) -> its version."""
    return {(kind, ref): n for kind, ref, n in Version.objects.values_list("kind", "ref", "n")}


def moved(before: dict[Pair, int]) -> set[Pair]:
    """What has another number than before."""
    after = numbers()
    return {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}


def expected(row: Any) -> Pair:
    """The (kind, ref) that a row's changes raise."""
    rule = DECIDING[row._meta.db_table]
    return rule.kind, str(getattr(row, rule.ref))


def write(row: Any, column: str, value: Any) -> None:
    """One column of one row, by hand-written SQL."""
    meta, known = row._meta, column_of(row._meta.db_table, column)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {meta.db_table} SET {column} = %s WHERE {meta.pk.column} = %s",
            [known.get_db_prep_save(value, connection), row.pk],
        )


@contextmanager
def taken_back() -> Iterator[None]:
    """What happens inside leaves no trace in the database."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def principals(made: Scene) -> dict[str, Any]:
    """Who everybody is as of now and until when; of a key that opens nothing the reason."""
    agent = Agent.objects.system().get(pk=made.team.owner.pk)
    user = User.objects.get(pk=made.user.pk)
    return {
        **{name: holder(token) for name, token in made.tokens.items()},
        "person": full(who_for_user(user, made.team.space.pk)),
        "person anywhere": full(who_for_user(user)),
        "explained": full(who_for_agent(agent)),
    }


def full(who: Who | None) -> Any:
    """Every field but the version numbers, also those that a comparison leaves out."""
    return {part.name: getattr(who, part.name) for part in fields(Who) if part.name != "version"} if who else None


def holder(token: str) -> Any:
    """Whom a key proves, or why it proves nobody."""
    try:
        return full(who_for_key(token))
    except BadKey as refusal:
        return refusal.reason
