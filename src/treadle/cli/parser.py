"""The parser of one command."""

import argparse
import sys
from collections.abc import Callable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed import SupportsWrite


class CommandParser(argparse.ArgumentParser):
    """A parser that can be asked what it takes, so that completion is written from it. `after` ends its help."""

    after: Callable[[], str] | None = None

    @property
    def actions(self) -> tuple[argparse.Action, ...]:
        """Its flags and operands, in their order."""
        return tuple(self._actions)

    def format_help(self) -> str:
        """Write the help."""
        return super().format_help() + (self.after() if self.after is not None else "")

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Write what argparse would swallow the failure of."""
        (file or sys.stderr).write(message)

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Take the words of the command line; ends the program, with the nearest flag, for one that there is not."""
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            self._refuse(unknown)
        return arguments

    def _refuse(self, unknown: Sequence[str]) -> "NoReturn":
        from difflib import get_close_matches

        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        near = get_close_matches(word.partition("=")[0], [name for one in self._actions for name in one.option_strings])
        what = f"There is no option {word}." if word.startswith("-") else f"{word!r} is not expected here."
        hint = f" Did you mean {near[0]}?" if near else ""
        self.exit(2, f"treadle: {what}{hint}\n  fix: {self.prog} --help lists the options.\n")
