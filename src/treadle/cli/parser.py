"""The parser of one command."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed import SupportsWrite


_ELSEWHERE = {
    **dict.fromkeys(
        ("--dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox", "--yolo", "--yes-always"),
        "--mode full runs everything without asking but what is dangerous, without a sandbox. --mode auto keeps it.",
    ),
    "--full-auto": "--mode auto runs commands without asking, in a sandbox.",
    **dict.fromkeys(
        ("--permission-mode", "--approval-mode", "--ask-for-approval"),
        "--mode says how much runs without asking: plan, ask, edits, auto, full.",
    ),
    **dict.fromkeys(("--prompt", "--message", "--query", "--quiet"), "-p TASK does one task and exits."),
    **dict.fromkeys(("--last", "--continue-session"), "--continue (-c) continues the folder's last session."),
    **dict.fromkeys(("--session", "--session-id"), "--resume SESSION (-r) continues a session."),
    **dict.fromkeys(("--cd", "--cwd", "--dir", "--workspace"), "-C DIR says the folder to work in."),
    **dict.fromkeys(("--image", "--read"), "--file FILE attaches a text file or an image."),
    "--fork-session": "treadle fork SESSION copies a session.",
    "--mcp-config": "treadle mcp add NAME -- COMMAND adds a server.",
    "--apply": "treadle copies apply NAME applies a copy, treadle try --apply what a command changed.",
    "--discard": "treadle copies discard NAME removes a copy.",
    "--diff": "treadle copies show NAME shows those of a copy, treadle checkpoint diff N those since a checkpoint.",
}
"""Options that people look for, and what does it here."""


LAST = "default: this folder's last"
"""The words for it; `named_session` finds it."""


def session_operand(parser: argparse.ArgumentParser, *, nargs: str | None = None, otherwise: str = "") -> None:
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
    listed_elsewhere = ""
    """The title of the group of options that help does not list again."""

    @property
    def actions(self) -> tuple[argparse.Action, ...]:
        """Its flags and operands, in their order."""
        return tuple(self._actions)

    def format_help(self) -> str:
        """Write the help."""
        shown = [one for one in self._actions if _title(one) != (self.listed_elsewhere or None)]
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, shown, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_arguments(one for one in shown if _title(one) == group.title)
            formatter.end_section()
        if len(shown) < len(self._actions):
            formatter.add_text(
                "The settings of a session, such as --model, can be given too: treadle --help lists them."
            )
        return formatter.format_help() + (self.after() if self.after is not None else "")

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
        if said := _ELSEWHERE.get(word.partition("=")[0]):
            self.exit(2, f"treadle: There is no option {word}.\n  why: It has another name here.\n  fix: {said}\n")
        flag = word.partition("=")[0]
        near = get_close_matches(flag, [name for one in self._actions for name in one.option_strings])
        near.sort(key=lambda one: sorted(one) != sorted(flag))  # swapped letters are the likeliest slip
        what = f"There is no option {word}." if word.startswith("-") else f"{word!r} is not expected here."
        hint = f" Did you mean {near[0]}?" if near else ""
        self.exit(2, f"treadle: {what}{hint}\n  fix: {self.prog} --help lists the options.\n")

    def error(self, message: str) -> "NoReturn":
        """End the program for a mistake that argparse found, in the lines that every error here has."""
        what, why = _in_lines(message)
        lines = [
            f"treadle: {what}",
            *([f"  why: {why}"] if why else []),
            f"  fix: {self.prog} --help lists the options.",
        ]
        self.exit(2, "\n".join([*lines, ""]))


def _title(action: argparse.Action) -> str | None:
    """The title of the group that an option or operand is listed in."""
    return getattr(getattr(action, "container", None), "title", None)


def _in_lines(message: str) -> tuple[str, str]:
    """Say a mistake that argparse says in its own words: what is wrong, and why."""
    said = re.fullmatch(r"argument (.+?): (.+)", message, re.DOTALL)
    name, problem = (said[1].replace("/", " or "), said[2]) if said else ("", message)
    if choice := re.fullmatch(r"invalid choice: (.+) \(choose from (.+)\)", problem, re.DOTALL):
        near = f"It is one of {choice[2].replace(chr(39), '')}."
        return (f"{choice[1]} is not expected here.", near) if "|" in name else (f"{name} cannot be {choice[1]}.", near)
    if missing := re.fullmatch(r"the following arguments are required: (.+)", problem):
        return f"Something is missing: {missing[1]}.", ""
    if other := re.fullmatch(r"not allowed with argument (.+)", problem):
        return f"{name} cannot be given with {other[1].replace('/', ' or ')}.", "Each excludes the other."
    if value := re.fullmatch(r"invalid \w+ value: (.+)", problem, re.DOTALL):
        return f"{name} cannot be {value[1]}.", "It is a number."
    if problem.startswith("expected "):
        return f"{name} needs a value.", ""
    return f"{name}: {problem}." if name else f"{problem}.", ""
