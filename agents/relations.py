"""Who may act on whose records: the delegation policy and the record checks. Read per call, never cached.

One recursive SELECT decides: it brings the workspace's policy and both chains of `reports_to`.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Q

from agents.models import Agent
from mcp.errors import Refused
from mcp.policy import Who

log = logging.getLogger(__name__)
POLICIES = ("department", "hierarchy", "open")
SYSTEM_SENDERS = frozenset({"dashboard", "webhook", "goal-loop-driver", "cron", "heartbeat", "autopilot"})
HOPS = 20
CLAIM_FIRST = "nobody owns it yet; take it with tasks_claim first"
CHAINS = """
WITH RECURSIVE up (start, id, department, boss, hop) AS (
    SELECT id, id, department, reports_to_id, 0 FROM agents_agent WHERE workspace_id = %s AND id IN (%s, %s)
    UNION ALL
    SELECT up.start, a.id, a.department, a.reports_to_id, up.hop + 1
    FROM agents_agent a JOIN up ON a.id = up.boss WHERE a.workspace_id = %s AND up.hop <= %s
)
SELECT start, id, department, (SELECT delegation FROM agents_platformsettings WHERE workspace_id = %s)
FROM up ORDER BY start, hop
"""
SUBTREE = """
WITH RECURSIVE down (id, hop) AS (
    SELECT id, 0 FROM agents_agent WHERE workspace_id = %s AND id = %s
    UNION ALL
    SELECT a.id, down.hop + 1 FROM agents_agent a JOIN down ON a.reports_to_id = down.id
    WHERE a.workspace_id = %s AND down.hop < %s
)
SELECT DISTINCT id FROM down
"""


@dataclass(frozen=True, slots=True)
class Delegation:
    """The workspace's `[delegation]` as it stands: a known policy and the pairs that are well formed."""

    policy: str
    pairs: frozenset[frozenset[str]]

    def partners(self, name: str) -> set[str]:
        """The names that an allow-listed pair joins with `name`; `open` knows no list."""
        return {other for pair in self.pairs if name in pair for other in pair if other != name}


@dataclass(slots=True)
class Chain:
    """One agent and the agents above it, at most `HOPS` of them."""

    department: str = ""
    above: list[str] = field(default_factory=list)
    too_deep: bool = False


def read_rule(stored: str | None) -> Delegation:
    """The policy in a stored section; what is unknown or malformed falls back or is dropped, with a warning."""
    section = json.loads(stored) if stored else {}
    section = section if isinstance(section, dict) else {}
    policy = section.get("policy", POLICIES[0])
    if policy not in POLICIES:
        log.warning("delegation policy %.40r is unknown; %s applies", policy, POLICIES[0])
        policy = POLICIES[0]
    return Delegation(policy, frozenset(pairs_of(section.get("allow", []))))


def pairs_of(entries: object) -> Iterable[frozenset[str]]:
    """The entries that are two different names."""
    for entry in entries if isinstance(entries, list) else ():
        names = [name for name in entry if isinstance(name, str) and name] if isinstance(entry, list) else []
        if len(names) == 2 == len(entry) and names[0] != names[1]:
            yield frozenset(names)
        else:
            log.warning("delegation allow entry %.80r is no pair of two agents; dropped", entry)


def read_chains(workspace: str, first: str, last: str) -> tuple[Delegation, dict[str, Chain]]:
    """The policy, and the chain of each of the two; a chain ends at the root, at a circle, or after `HOPS`."""
    with connection.cursor() as cursor:
        cursor.execute(CHAINS, (workspace, first, last, workspace, HOPS, workspace))
        rows = cursor.fetchall()
    found: dict[str, Chain] = {}
    for start, agent, department, _ in rows:
        if start == agent:
            found.setdefault(start, Chain(department))
        elif agent not in found[start].above:
            found[start].above.append(agent)
    for chain in found.values():
        chain.too_deep = len(chain.above) > HOPS
        del chain.above[HOPS:]
    return read_rule(rows[0][3] if rows else None), found


def why_denied(workspace: str, sender: Agent | Who, target: Agent) -> str | None:
    """The delegation predicate: None allows, else the reason. Both must be of the workspace."""
    sender_id, sender_name = (sender.agent, sender.name) if isinstance(sender, Who) else (sender.id, sender.name)
    if not sender_id or target.workspace_id != workspace:
        return "invalid_agent_id"
    if sender_id == target.id:
        return "self_delegation"
    rule, found = read_chains(workspace, sender_id, target.id)
    mine, theirs = found.get(sender_id), found.get(target.id)
    if mine is None or theirs is None:
        return "invalid_agent_id"
    if rule.policy == "open":
        return None
    if sender_id in theirs.above or target.id in mine.above or target.name in rule.partners(sender_name):
        return None
    return unrelated(rule.policy, mine, theirs)


def unrelated(policy: str, mine: Chain, theirs: Chain) -> str | None:
    """The last two steps of the predicate: the department, and the word for a no."""
    if policy == "department" and mine.department and mine.department == theirs.department:
        return None
    if mine.too_deep or theirs.too_deep:
        return "chain_too_deep"
    if policy == "hierarchy":
        return "no_hierarchy_relation"
    return "different_department" if mine.department and theirs.department else "missing_department"


def check_identity(by: Who) -> None:
    """Raise unless the caller is a person or a proven agent; a system sender's name proves nothing."""
    if by.is_human:
        return
    if not by.is_agent or not by.agent:
        raise Refused("caller_unknown", "this needs a caller that is an agent or an operator")
    if by.name in SYSTEM_SENDERS:
        raise Refused("system_sender_identity", f"{by.name} is a name of the platform's own and owns no records")


def check_record(
    by: Who, owner: Agent | None, *, what: str, hint: str = CLAIM_FIRST, parties: Iterable[str | None] = ()
) -> None:
    """Raise unless the caller may change a record of `owner`.

    `parties` are ids of agents that pass without a relationship; `what` names the record and `hint` says what
    to do about a record without an owner.
    """
    check_identity(by)
    if by.is_human or by.agent in parties:
        return
    if owner is None:
        raise Refused("owner_unknown", f"{what} has no owner: {hint}")
    if owner.id != by.agent:
        check_delegation(by, owner, f"{what} belongs to {owner.name}")


def check_delegation(by: Who, target: Agent, because: str) -> None:
    """Raise unless the delegation policy relates the caller with `target`; `because` opens the refusal's text."""
    why = None if by.is_human or by.agent == target.id else why_denied(by.workspace, by, target)
    if why is not None:
        raise Refused(
            "delegation_denied",
            f"{because}, and the delegation policy relates {by.name} with {target.name} in no way ({why})",
            target=target.name,
            why=why,
        )


def visible_agents(who: Who, *, archived: bool = False) -> Any:
    """The agents that a principal may know of; a person knows all, an external client none.

    Living ones, with `archived` also the terminated; removed ones never.
    """
    rows = Agent.objects.for_who(who)
    kept = rows.exclude(status=Agent.Status.REMOVED) if archived else rows.living()
    if who.is_human:
        return kept
    if not who.is_agent or not who.agent:
        return kept.none()
    rule, found = read_chains(who.workspace, who.agent, who.agent)
    return kept if rule.policy == "open" else kept.filter(related_to(who, rule, found.get(who.agent, Chain())))


def related_to(who: Who, rule: Delegation, chain: Chain) -> Q:
    """Itself, all below and above it, its allow-listed partners and, under that policy, its department."""
    wanted = Q(id__in=[*subtree(who), *chain.above]) | Q(name__in=rule.partners(who.name))
    if rule.policy == "department" and chain.department:
        wanted |= Q(department=chain.department)
    return wanted


def subtree(who: Who) -> list[str]:
    """The ids of the agent itself and of all that report to it, directly or not, at most `HOPS` deep."""
    with connection.cursor() as cursor:
        cursor.execute(SUBTREE, (who.workspace, who.agent, who.workspace, HOPS))
        return [row[0] for row in cursor.fetchall()]
