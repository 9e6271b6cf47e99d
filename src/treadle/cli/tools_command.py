"""List the tools: their risk, and which the model gets. With a NAME, show all that the model reads about it."""

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from treadle.cli import work
from treadle.cli.command_line import flags

if TYPE_CHECKING:
    from treadle.door.reports import ToolLine, ToolList


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="one tool: its text and its parameters")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, parameters and text included")
    work.add_settings(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the list, or one tool."""
    from treadle.door.opening import check_workspace
    from treadle.door.reports import find_tool, list_tools
    from treadle.door.settings import load_settings
    from treadle.door.trust import session_trust, trusted_by_variable
    from treadle.protocol.codec import encode

    trust = session_trust(check_workspace(arguments.directory), once=arguments.trust or trusted_by_variable())
    settings = load_settings(flags(arguments), workspace=trust.workspace, trusted=trust.trusted)
    found = list_tools(settings, trust)
    lines = [find_tool(found, arguments.name)] if arguments.name else found.tools
    for line in lines if arguments.json else ():
        sys.stdout.write(f"{encode(line).decode()}\n")
    if not arguments.json:
        sys.stdout.write(_one(lines[0]) if arguments.name else _table(found))
    sys.stderr.writelines(f"treadle: {problem}\n" for problem in found.problems)
    return 0


def _table(found: "ToolList") -> str:
    rows = [("", "TOOL", "KIND", "RISK", "EFFECT", "FROM", "")]
    for line in found.tools:
        mark = "*" if line.offered else " "
        rows.append((mark, line.name, line.kind, line.risk, line.effect, line.origin, line.why_not))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    shown = ["  ".join(f"{text:<{width}}" for text, width in zip(row, (*widths, 0), strict=True)) for row in rows]
    note = f"* {found.model or 'a model'} gets this tool. RISK applies to a call that does not name what it accesses."
    return "".join(f"{line.rstrip()}\n" for line in (*shown, note))


def _one(line: "ToolLine") -> str:

    schema = msgspec.json.format(msgspec.json.encode(line.parameters), indent=2).decode()
    facts = f"{line.origin}, kind {line.kind}, risk {line.risk}, effect {line.effect}"
    note = "sent to the model" if line.offered else f"not sent to the model: {line.why_not}"
    return f"{line.name} ({facts}; {note})\n\n{line.description}\n\nParameters:\n{schema}\n"
