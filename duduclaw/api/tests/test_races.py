"""Two operators who saw the same version: one changes it, the other hears that it is stale."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from agents.models import Agent, PolicyChange
from duduclaw.api.tests.house import bearer
from tests.build import company

ROUNDS, RACERS = 5, 4


@pytest.mark.engines
@pytest.mark.django_db(transaction=True)
def test_one_of_several_writers_of_a_version_wins() -> None:
    team = company()
    token = team.tokens["operator"]

    def patch(version: int, number: int, start: Barrier) -> Callable[[], int]:
        def go() -> int:
            start.wait(60)
            try:
                body: dict[str, Any] = {"role": f"role-{version}-{number}", "version": version}
                answer = bearer(token).patch("/api/v1/agents/owner/", body, format="json")
                return int(answer.status_code)
            finally:
                connection.close()

        return go

    with ThreadPoolExecutor(RACERS) as pool:
        for version in range(1, ROUNDS + 1):
            start = Barrier(RACERS)
            racing = [pool.submit(patch(version, number, start)) for number in range(RACERS)]
            assert sorted(race.result(60) for race in racing) == [200, *[409] * (RACERS - 1)]
    row = Agent.objects.system().get(name="owner")
    assert row.version == ROUNDS + 1
    assert PolicyChange.objects.system().filter(ref=row.id, field="role").count() == ROUNDS
