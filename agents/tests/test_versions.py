"""The version numbers that every cache of rights hangs on: whatever decides moves one, by whatever door."""

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.state import ProjectState

from agents.tests.deciding import (
    MODELS,
    Pair,
    Scene,
    another,
    column_of,
    deciding_pairs,
    expected,
    moved,
    numbers,
    other_pairs,
    scene,
    taken_back,
    write,
)  # fmt: skip
from agents.versions import DECIDING

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'ddc_version_%'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'ddc_version_%'",
}


@pytest.fixture(name="people")
def build_scene() -> Scene:
    return scene()


def by_save(row: Any, column: str, value: Any) -> None:
    setattr(row, column, value)
    row.save()


def by_update(row: Any, column: str, value: Any) -> None:
    assert type(row)._base_manager.filter(pk=row.pk).update(**{column: value}) == 1


def by_bulk_update(row: Any, column: str, value: Any) -> None:
    setattr(row, column, value)
    type(row)._base_manager.bulk_update([row], [column_of(row._meta.db_table, column).name])


DOORS: tuple[Callable[[Any, str, Any], None], ...] = (by_save, by_update, by_bulk_update, write)


@pytest.mark.parametrize("pair", deciding_pairs(), ids=".".join)
def test_a_deciding_column_moves_its_number_by_every_door(people: Scene, pair: Pair) -> None:
    table, column = pair
    for door in DOORS:
        with taken_back():
            row = copy(people.rows[table][0])
            before, value = numbers(), another(people, row, column)
            door(row, column, value)
            assert moved(before) == {expected(row)}, door.__name__


@pytest.mark.parametrize("pair", other_pairs(), ids=".".join)
def test_a_column_outside_the_map_moves_nothing(people: Scene, pair: Pair) -> None:
    table, column = pair
    row, before = people.rows[table][0], numbers()
    write(row, column, another(people, row, column))
    assert moved(before) == set()


@pytest.mark.parametrize("table", [table for table, rule in DECIDING.items() if rule.ref != "id"])
def test_a_row_that_changes_hands_moves_both_numbers(people: Scene, table: str) -> None:
    row, rule, before = people.rows[table][0], DECIDING[table], numbers()
    new = another(people, row, rule.ref)
    write(row, rule.ref, new)
    assert moved(before) == {expected(row), (rule.kind, str(new))}


@pytest.mark.parametrize("table", DECIDING)
def test_a_row_touched_without_a_change_moves_nothing(people: Scene, table: str) -> None:
    row, before = people.rows[table][0], numbers()
    row.save()
    type(row)._base_manager.get(pk=row.pk).save()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET " + ", ".join(f"{name} = {name}" for name in DECIDING[table].columns))
    assert moved(before) == set()


@pytest.mark.parametrize("table", DECIDING)
def test_a_row_that_goes_or_comes_moves_its_number(people: Scene, table: str) -> None:
    row = people.rows[table][0]
    rows, before = type(row)._base_manager.filter(pk=row.pk), numbers()
    rows.delete()
    assert expected(row) in moved(before)
    before = numbers()
    row.save(force_insert=True)
    assert moved(before) == {expected(row)}


@pytest.mark.parametrize("table", DECIDING)
def test_rows_that_are_inserted_in_bulk_move_their_numbers(people: Scene, table: str) -> None:
    row = people.rows[table][0]
    type(row)._base_manager.filter(pk=row.pk).delete()
    before = numbers()
    type(row)._base_manager.bulk_create([row])
    assert moved(before) == {expected(row)}


def standing() -> set[str]:
    """The version triggers of the database."""
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS[connection.vendor])
        return {name for (name,) in cursor.fetchall()}


def remake(table: str) -> None:
    """Alter a column as a migration does, and alter it back: SQLite makes the table anew each time."""
    model = ProjectState.from_apps(apps).apps.get_model(MODELS[table]._meta.label)
    old = next(known for known in model._meta.concrete_fields if not known.primary_key and not known.is_relation)
    new = old.clone()
    new.null = not old.null
    new.set_attributes_from_name(old.name)
    new.model = model
    for was, becomes in ((old, new), (new, old)):
        with connection.schema_editor() as editor:
            editor.alter_field(model, was, becomes)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", DECIDING)
def test_the_triggers_survive_a_remade_table(table: str) -> None:
    every = standing()
    assert len(every) == 3 * len(DECIDING)
    remake(table)
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    assert standing() == every
    people = scene()
    row, before = people.rows[table][0], numbers()
    column = DECIDING[table].columns[0]
    write(row, column, another(people, row, column))
    assert moved(before) == {expected(row)}
