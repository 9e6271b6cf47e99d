"""Print pages that are generated from the program: errors, or the JSON Schemas of what it writes."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("page", choices=["errors", "schema"])
    parser.add_argument("of", nargs="?", choices=["event", "notification"], help="only this schema")


def execute(arguments: argparse.Namespace) -> int:
    """Print the page."""
    if arguments.page == "schema":
        import json

        from treadle.protocol.codec import schemas

        found = schemas()
        shown = found if arguments.of is None else found[arguments.of]
        sys.stdout.write(json.dumps(shown, indent=2, sort_keys=True) + "\n")
        return 0
    from treadle.door.program import errors_page

    sys.stdout.write(errors_page())
    return 0
