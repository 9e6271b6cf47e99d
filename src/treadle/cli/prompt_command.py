"""Show the system prompt that a model is sent in this folder, part by part, with its tokens."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.cli import work
from treadle.cli.command_line import flags

if TYPE_CHECKING:
    from treadle.door.reports import ShownPart


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("what", choices=["show"], help="show the parts")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    work.add_settings(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the parts."""
    from treadle.door.opening import check_workspace
    from treadle.door.reports import shown_prompt
    from treadle.door.settings import load_settings
    from treadle.door.trust import session_trust, trusted_by_variable
    from treadle.protocol.codec import encode

    folder = check_workspace(getattr(arguments, "directory", None) or Path())
    trust = session_trust(folder, once=arguments.trust or trusted_by_variable())
    settings = load_settings(flags(arguments), workspace=trust.workspace, trusted=trust.trusted)
    found = shown_prompt(settings, trust)
    if arguments.json:
        sys.stdout.write(f"{encode(found).decode()}\n")
        return 0
    named = f"{found.model or 'a model'} (family {found.family}, {found.tool_protocol} calls)"
    sys.stdout.write(f"The system prompt of {named}: about {sum(part.tokens for part in found.parts):,} tokens.\n")
    sys.stdout.writelines(f"\n{_heading(part)}\n{part.text}\n" for part in found.parts)
    sys.stdout.write(f"\nTo change a part, write it to {found.folder}/NAME.md. An empty file leaves it out.\n")
    if notice := trust.notice():
        sys.stderr.write(f"treadle: {notice}\n")
    return 0


def _heading(part: "ShownPart") -> str:
    origin = f", from {part.origin}" if part.origin else ""
    return f"--- {part.name} (about {part.tokens:,} tokens{origin}) ---"
