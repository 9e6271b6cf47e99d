"""A plain command line, read without argparse: to load that and to build its parser is a fortieth of the start.

The flags are those that a command gives to its parser. What is not plain is left to that parser: help, mistakes, words
without a flag, a flag and its value in one word, flags that exclude each other.
"""

from collections.abc import Sequence
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PLAIN = frozenset({"dest", "metavar", "help", "default", "action", "type", "choices"})
_ACTIONS = frozenset({"store", "store_true", "append"})


def plain_arguments(configure: "Callable[[Any], None]", words: Sequence[str]) -> SimpleNamespace | None:
    """Read the words for the flags that `configure` adds, as argparse would; None for what is not plain."""
    flags = _Flags({})
    configure(flags)
    try:
        return SimpleNamespace(**flags.read(words))
    except (LookupError, ValueError):
        return None


def flag_names(configure: "Callable[[Any], None]") -> frozenset[str]:
    """Give the names of all flags that `configure` adds, short ones too."""
    names = _Names()
    configure(names)
    return frozenset(names.found)


class _Names:
    """Stands in for a parser, and notes the names of its flags."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def add_argument(self, *names: str, **said: "Any") -> None:  # noqa: ARG002 - as a parser has it
        """Take a flag, or the words without one."""
        self.found.update(name for name in names if name.startswith("-"))

    def add_argument_group(self, *_: str) -> "_Names":
        """Take flags that help shows together."""
        return self

    add_mutually_exclusive_group = add_argument_group


class _Flags:
    """Stands in for a parser, of which it knows what a command asks of one."""

    def __init__(self, defaults: "dict[str, Any]") -> None:
        self._defaults = defaults
        self._known: dict[str, tuple[str, dict[str, Any]]] = {}

    def add_argument(self, *names: str, **said: "Any") -> None:
        """Take a flag, or the words without one."""
        long = next((name for name in names if name.startswith("--")), names[0])
        dest = said.get("dest", long.lstrip("-").replace("-", "_"))
        action = said.get("action", "store")
        nothing: Any = [] if said.get("nargs") == "*" else False if action == "store_true" else None
        self._defaults[dest] = said.get("default", nothing)
        is_plain = said.keys() <= _PLAIN and action in _ACTIONS and isinstance(said.get("type", str), type)
        if names[0].startswith("-") and is_plain:
            self._known.update(dict.fromkeys(names, (dest, said)))

    def add_argument_group(self, title: str) -> "_Flags":  # noqa: ARG002 - as a parser has it
        """Take flags that help shows together."""
        return self

    def add_mutually_exclusive_group(self) -> "_Flags":
        """Take flags of which one may be given: they have their defaults, and are not plain."""
        return _Flags(self._defaults)

    def read(self, words: Sequence[str]) -> "dict[str, Any]":
        """Read the words; raises `LookupError` or `ValueError` for what is not plain."""
        found = dict(self._defaults)
        rest = iter(words)
        for word in rest:
            dest, said = self._known[word]
            match said.get("action"):
                case "store_true":
                    found[dest] = True
                case "append":
                    found[dest] = [*(found[dest] or ()), _value(next(rest, "-"), said)]
                case _:
                    found[dest] = _value(next(rest, "-"), said)
        return found


def _value(word: str, said: "dict[str, Any]") -> "Any":
    """Give what a word says; one that begins like a flag is not plain."""
    value = said.get("type", str)(word)
    if word.startswith("-") or value not in said.get("choices", (value,)):
        raise ValueError(word)
    return value
