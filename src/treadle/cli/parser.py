"""The parser of one command."""

import argparse
import sys
from collections.abc import Callable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed import SupportsWrite


LAST = "default: this folder's last"
"""The words for it; `named_session` finds it."""


def add_session(parser: argparse.ArgumentParser, *, nargs: str | None = None, otherwise: str = "") -> None:
    """Add the operand for a session, the same for all commands; `otherwise` says what happens without one."""
    about = "the session: its id, or the beginning of its id or title" + (f" ({otherwise})" if otherwise else "")
    default = [] if nargs == "*" else ""
    parser.add_argument("session", nargs=nargs, default=default, metavar="SESSION", help=about)


def named_session(name: str) -> str:
    """Give the session that was named, or else the last one of the current folder; raises `SessionError`."""
    if name:
        return name
    from pathlib import Path

    from treadle.door.opening import last_session

    return last_session(Path.cwd().resolve())


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
