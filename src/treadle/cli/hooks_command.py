"""List the hooks for a folder: when each runs, what it runs, whose it is, and which do not run. Nothing is run."""

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("verb", nargs="?", choices=["list"], default="list", help="list them (the default)")
    parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder to work in")
    parser.add_argument("--trust", action="store_true", help="as in a trusted folder")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from treadle.door.opening import check_workspace
    from treadle.door.program import harmless
    from treadle.door.settings import NO_HOOKS, hook_text, list_hooks, load_settings
    from treadle.door.trust import session_trust
    from treadle.protocol.codec import encode

    trust = session_trust(check_workspace(arguments.directory), once=arguments.trust)
    lines = list_hooks(load_settings({}, workspace=trust.workspace, trusted=trust.trusted), trust)
    for line in lines:
        sys.stdout.write(f"{encode(line).decode()}\n" if arguments.json else f"{harmless(hook_text(line))}\n")
    if not lines and not arguments.json:
        sys.stderr.write(f"{NO_HOOKS}\n")
    return 0
