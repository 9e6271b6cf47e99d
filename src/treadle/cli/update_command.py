"""Print the commands that bring this copy of Treadle up to date, or add an extra to it. Nothing is run."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--with", dest="extra", default="", metavar="EXTRA", help="print the command that adds EXTRA")


def execute(arguments: argparse.Namespace) -> int:
    """Print them, each on a line of its own; what a person must know goes to standard error."""
    from treadle.commit import version_words
    from treadle.door.program import Exit
    from treadle.door.reports import extras, install_command, installation
    from treadle.protocol.errors import ConfigError

    if arguments.extra:
        if arguments.extra not in (known := sorted(extras())):
            raise ConfigError(
                "extra-unknown",
                f"There is no extra {arguments.extra!r}.",
                fix=f"Use one of: {', '.join(known)}."
                if known
                else "This copy runs from its source: see pyproject.toml.",
            )
        sys.stdout.write(f"{install_command(arguments.extra)}\n")
        return Exit.DONE
    found = installation()
    notes = (f"{version_words()}, installed by {found.installer} from {found.origin}.", *found.notes())
    sys.stderr.write("".join(f"{note}\n" for note in notes))
    sys.stdout.write("".join(f"{command}\n" for command in found.updating()))
    return Exit.DONE
