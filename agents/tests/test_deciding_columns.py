"""The map of deciding columns and the builder of `Who` agree: nothing else is read, and nothing is listed in vain."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.principals import forget
from agents.tests.deciding import (
    Pair,
    Scene,
    another,
    deciding_pairs,
    other_pairs,
    principals,
    rows_with,
    scene,
    taken_back,
    write,
)  # fmt: skip
from agents.versions import DECIDING

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
READ = re.compile(r'\b(?:FROM|JOIN) "?([a-z_]+)"?')
# Tables that `Who` reads and that have no number of their own, and why.
UNNUMBERED = {"agents_version": "the numbers themselves"}
# Columns of the map whose change alone changes no `Who`, and why they are listed all the same.
WITHOUT_EFFECT: dict[Pair, str] = {}


@pytest.fixture(name="people")
def build_scene() -> Scene:
    forget()
    return scene()


def test_who_reads_no_table_outside_the_map(people: Scene) -> None:
    with CaptureQueriesContext(connection) as queries:
        principals(people)
    read = {name for query in queries.captured_queries for name in READ.findall(query["sql"])}
    assert read - set(UNNUMBERED) == set(DECIDING)


@pytest.mark.parametrize("pair", other_pairs(), ids=".".join)
def test_who_reads_no_column_outside_the_map(people: Scene, pair: Pair) -> None:
    table, column = pair
    before = principals(people)
    for row in people.rows[table]:
        write(row, column, another(people, row, column))
    forget()
    assert principals(people) == before


@pytest.mark.parametrize("pair", deciding_pairs(), ids=".".join)
def test_a_column_of_the_map_decides_something(people: Scene, pair: Pair) -> None:
    table, column = pair
    before, changed = principals(people), set()
    for row in rows_with(people, table, column):
        with taken_back():
            write(row, column, another(people, row, column))
            after = principals(people)
            forget()
            assert principals(people) == after, "the cache answered with what stood before"
        changed |= {name for name in before if before[name] != after[name]}
    assert bool(changed) != (pair in WITHOUT_EFFECT)


def test_the_cache_follows_rows_that_change_hands(people: Scene) -> None:
    for table in (table for table, rule in DECIDING.items() if rule.ref != "id"):
        principals(people)
        with taken_back():
            row, column = people.rows[table][0], DECIDING[table].ref
            write(row, column, another(people, row, column))
            cached = principals(people)
            forget()
            assert cached == principals(people), table
        forget()
