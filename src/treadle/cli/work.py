"""Work on a task in a folder with a model: interactively, or with -p as one task in a script."""

import sys
from pathlib import Path

from treadle.cli.streams import Loading

TYPE_CHECKING = False
"""`--help` is written from here, and loads nothing that it does not need."""
if TYPE_CHECKING:
    import argparse

MODES = ("plan", "ask", "edits", "auto", "full")
PROTOCOLS = ("native", "xml")
SETTINGS = "settings of the session"
"""The options that many commands have: the help of the main one shows them."""


_FOR_SCRIPTS = {
    "--allowed-tools": "with -p or --bg: what runs without asking, such as 'Edit,Bash(npm test:*)'",
    "--disallowed-tools": "with -p or --bg: what is not offered or denied, such as 'WebFetch,Bash(git push:*)'",
    "--system-prompt": "with -p or --bg: a text in place of Treadle's own words on how to work",
    "--append-system-prompt": "with -p or --bg: a text after the system prompt",
    "--json-schema": "with -p: the JSON Schema that the answer fits",
    "--goal": "work on until this condition is met, or nothing more helps",
    "--check": "with --goal: the command that says so, with exit status 0",
}
"""Options for tasks that nobody sits at, and the goal of one."""


def configure(parser: "argparse.ArgumentParser") -> None:
    """Add the flags."""
    parser.add_argument("task", nargs="*", help='the first task of an interactive session, in quotes: treadle "fix it"')
    parser.add_argument("--version", "-V", "-v", action="store_true", help="print the version and exit")
    tasks = parser.add_argument_group("tasks")
    tasks.add_argument(
        "-p",
        "--print",
        dest="print_task",
        metavar="TASK",
        help="do TASK without asking, then exit ('-' reads it from standard input; @FILE sends a file along)",
    )
    tasks.add_argument(
        "--bg",
        metavar="TASK",
        nargs="?",
        const="",
        help="do TASK in the background: print the session's id and return; --attach joins it, `treadle stop` ends it",
    )
    tasks.add_argument(
        "--output-format",
        choices=["text", "json", "stream-json"],
        default="text",
        help="what -p writes to standard output (default: text, the answer)",
    )
    _add_files_and_copies(tasks)
    for flag, about in _FOR_SCRIPTS.items():
        action = "append" if flag.endswith("-tools") else "store"
        names = (flag, flag.replace("-tools", "Tools"))[: 1 + flag.endswith("-tools")]
        tasks.add_argument(*names, action=action, metavar=flag.rpartition("-")[2].upper(), help=about)
    add_settings(parser)
    _add_sessions(parser)
    parser.add_argument(
        "--screen-reader", action="store_true", default=None, help="plain lines for a screen reader, without redrawing"
    )


def _add_sessions(parser: "argparse.ArgumentParser") -> None:
    """Add the flags that name a session to continue or to join."""
    which = parser.add_argument_group("which session").add_mutually_exclusive_group()
    which.add_argument(
        "--resume",
        "-r",
        metavar="SESSION",
        nargs="?",
        default="",
        help="continue a session: its id, or the beginning of its id or title; without SESSION, choose one from a list",
    )
    which.add_argument("--continue", "-c", dest="go_on", action="store_true", help="continue the folder's last session")
    which.add_argument(
        "--attach",
        metavar="SESSION",
        nargs="?",
        default="",
        help="join a session that is open elsewhere; without SESSION, the one of this folder; with -p: give it a task",
    )


def _add_files_and_copies(tasks: "argparse._ArgumentGroup") -> None:
    """Add the flags for what goes along, and for work in copies of the folder."""
    tasks.add_argument(
        "--file",
        "-f",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="a text file or image to attach",
    )
    tasks.add_argument(
        "--copy", "-w", metavar="NAME", help="work in a copy of the folder; `treadle copies` shows and applies it"
    )
    tasks.add_argument(
        "--variants",
        metavar="N|MODELS",
        help="with -p and -w: do TASK so many times side by side, or with each of these models, in a copy each",
    )


def add_settings(parser: "argparse.ArgumentParser", *, directory: bool = True, costs: str = "this session") -> None:
    """Add the flags that override settings; without `directory` where the folder is named elsewhere.

    `costs` names what --max-cost is a limit of.
    """
    if directory:
        parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder to work in")
    settings = parser.add_argument_group(SETTINGS)
    settings.add_argument(
        "--add-dir",
        dest="add_dirs",
        action="append",
        type=Path,
        metavar="DIR",
        help="add a folder to the workspace (can be given more than once)",
    )
    settings.add_argument(
        "--agents",
        action="append",
        type=Path,
        metavar="FILE",
        help="an agent for subagents; can be given several times",
    )
    settings.add_argument("--model", metavar="PROVIDER/MODEL", help="the model; `treadle models` lists the names")
    settings.add_argument("--base-url", metavar="URL", help="another address for the provider's API")
    settings.add_argument("--mode", choices=MODES, help="how much runs without asking (default: ask)")
    settings.add_argument(
        "--tool-protocol", choices=PROTOCOLS, help=("how calls are written (default: what the model supports)")
    )
    settings.add_argument(
        "--fallback", metavar="PROVIDER/MODEL", help=("the model that takes over when the first one fails")
    )
    settings.add_argument("--profile", metavar="NAME", help="use the keys that `treadle login --as NAME` stored")
    settings.add_argument("--thinking-budget", type=int, metavar="N", help="tokens for thinking (0: none)")
    settings.add_argument(
        "--max-steps", "--max-turns", type=_positive, metavar="N", help="end a turn after N model calls"
    )
    settings.add_argument(
        "--max-cost", "--max-budget-usd", type=float, metavar="USD", help=f"the most US dollars to spend on {costs}"
    )
    settings.add_argument("--max-tokens", type=_positive, metavar="N", help="the most tokens to use in this session")
    settings.add_argument("--max-seconds", type=float, metavar="S", help="end a turn after S seconds")
    settings.add_argument(
        "--wait-for-reset", action="store_true", help="wait until the provider's limit resets, however long that is"
    )
    settings.add_argument(
        "--trust",
        action="store_true",
        help="trust the folder for this run only: use its rules and settings without asking",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError("must be 1 or more")
    return number


def execute(arguments: "argparse.Namespace") -> int:
    """Run the session; returns the exit code."""
    if arguments.version:
        from treadle.commit import version_words

        sys.stdout.write(f"{version_words()}\n")
        return 0
    with Loading():
        from treadle.cli.working import work

    return work(arguments)
