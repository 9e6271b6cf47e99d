"""The door between surfaces and the app: few modules, each name in it once, there, and used."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

import pytest

from tests.architecture.test_shape import SOURCE, source_modules

MOST_DOORS = 15
DOORS = sorted(file.stem for file in (SOURCE / "door").glob("*.py") if file.stem != "__init__")


@cache
def parts_of(door: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The names of a door for type checkers, and those that are found when it is used, each with its module."""
    tree = ast.parse((SOURCE / "door" / f"{door}.py").read_text(encoding="utf-8"))
    (choice,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or "": node.module or ""
        for node in choice.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == alias.asname
    }
    (table,) = (node for node in ast.walk(choice) if isinstance(node, ast.Dict))
    found = {name: module for module, names in ast.literal_eval(table).items() for name in names.split()}
    return typed, found


def used() -> Iterator[tuple[str, str, str]]:
    """Every name that is taken through a door: who takes it, which door, and the name."""
    for file, tree in source_modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("treadle.door."):
                yield from ((file, (node.module or "").rpartition(".")[2], alias.name) for alias in node.names)


def test_there_are_few_doors() -> None:
    assert 0 < len(DOORS) <= MOST_DOORS


@pytest.mark.parametrize("door", DOORS)
def test_a_name_is_the_same_for_the_type_checker_and_the_program(door: str) -> None:
    typed, found = parts_of(door)
    assert typed == found
    module = import_module(f"treadle.door.{door}")
    for name, place in found.items():
        assert getattr(module, name) is getattr(import_module(place), name)
    with pytest.raises(AttributeError):
        _ = module.no_such_name


def test_a_name_is_behind_one_door() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for door in DOORS:
        for name in parts_of(door)[0]:
            places[name].append(door)
    assert {name: doors for name, doors in places.items() if len(doors) > 1} == {}


def test_every_name_of_a_door_is_taken_by_somebody() -> None:
    taken = {(door, name) for _, door, name in used()}
    given = {(door, name) for door in DOORS for name in parts_of(door)[0]}
    assert given == taken, "Take out what nobody takes."


def test_nothing_behind_the_door_goes_through_it() -> None:
    inside = {file for file, _, _ in used() if file.startswith(("app/", "engine/", "present/"))}
    assert inside == set()
