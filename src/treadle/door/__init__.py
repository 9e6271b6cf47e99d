"""The door: what surfaces see of what is behind it. Each name is loaded where it is first asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module


def names_of(door: str, table: Mapping[str, str]) -> Callable[[str], object]:
    """Give what finds the names of a door: `table` says which module has which, separated by blanks."""
    places = {name: module for module, names in table.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {door!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return find
