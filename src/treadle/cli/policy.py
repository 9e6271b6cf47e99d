"""Ask the security layer: what would it say of this command, these rows, and why. Nothing is run."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode

if TYPE_CHECKING:
    from treadle.policy.context import PolicyContext


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="test|explain")
    test = verbs.add_parser("test", help="classify commands and paths given as JSON lines")
    test.add_argument(
        "--jsonl", action="store_true", help="rows {id, command} or {id, path, op, cwd} on standard input"
    )
    explain = verbs.add_parser("explain", help="say what would be decided about a command, and why")
    explain.add_argument("command", help="the shell line")
    for verb in (test, explain):
        verb.add_argument("--workspace", "-C", type=Path, default=Path(), metavar="DIR", help="the folder worked in")
        verb.add_argument("--untrusted", action="store_true", help="as in a folder that is not trusted")
        verb.add_argument(
            "--mode", choices=[mode.value for mode in Mode], default="ask", help="the mode (default: ask)"
        )
        verb.add_argument("--home", type=Path, metavar="DIR", help="another home directory")


def execute(arguments: argparse.Namespace) -> int:
    """Answer the rows, or explain one command."""
    from treadle.policy.rows import answer_row

    context = _context(arguments)
    if arguments.verb == "explain":
        sys.stdout.writelines(f"{line}\n" for line in _explanation(answer_row({"command": arguments.command}, context)))
        return 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if line.strip():
            answer = _answer(line, number, context)
            sys.stdout.write(f"{msgspec.json.encode(answer).decode()}\n")
    return 0


def _context(arguments: argparse.Namespace) -> "PolicyContext":
    from treadle.app.compose import policy_context

    home = str(arguments.home or Path.home())
    return policy_context(
        root=os.path.realpath(arguments.workspace), mode=arguments.mode, home=home, trusted=not arguments.untrusted
    )


def _answer(line: bytes, number: int, context: "PolicyContext") -> dict[str, Any]:
    from treadle.policy.rows import answer_row

    try:
        return answer_row(msgspec.json.decode(line, type=dict[str, Any]), context)
    except ValueError as error:
        raise ConfigError("policy-row", f"Line {number} of the input is not a row.", why=str(error)) from error


def _explanation(answer: dict[str, Any]) -> Iterator[str]:
    yield f"{answer['verdict']}  ({answer['class']})"
    yield from (f"  {reason}" for reason in answer["reasons"])
    yield f"  rules: {', '.join(answer['rules'])}"
