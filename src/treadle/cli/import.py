"""Take over rules, MCP servers and permissions of another coding agent. Everything is shown before it is taken."""  # noqa: N999

import argparse

from treadle.cli.take_over import add_program_flags, import_program


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_program_flags(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Take over what a program has."""
    from treadle.protocol.errors import ConfigError

    if arguments.program is None:
        raise ConfigError("import-what", "What is to be imported?", fix="treadle import --from claude-code --dry-run")
    return import_program(arguments)
