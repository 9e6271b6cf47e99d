"""The command line: which command runs; every error ends in four lines and an exit code."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from treadle.cli.parser import CommandParser
from treadle.protocol.errors import ConfigError, SessionError, TreadleError

COMMANDS = MappingProxyType(
    {
        "demo": "see the main job done on a sample project, without a key",
        "sessions": "list sessions",
        "show": "show what happened in a session",
        "jobs": "list the commands in the background; show their output, end them",
        "edits": "show how well models edit; apply an edit without a model",
        "parse": "read model replies without a model",
        "audit": "check the logs, or show what was judged and run",
        "trust": "let what acts in a folder act, or take that back; list the trusted folders",
        "policy": "ask the security layer what it would say, and why",
        "config": "show each setting and where it comes from; set one",
        "login": "store a provider's key after trying it",
        "logout": "forget a provider's stored key",
        "providers": "list the providers, and which are configured",
        "models": "list models: what they hold, can and cost",
        "tools": "list the tools; show what a model reads of one",
        "doctor": "check the installation and the configured providers",
        "explain": "explain an error's code",
        "completion": "print a completion script for your shell",
        "docs": "print generated pages: states, errors, schema",
        "scripted": "serve a scripted model over HTTP",
        "start": "work interactively if a model is configured, else run the demo",
    }
)
"""The commands besides the main one; each is the module of `treadle.cli` of the same name."""


def run(argv: Sequence[str]) -> int:
    """Run a command; returns the exit code."""
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    arguments = parser_of(name).parse_args(list(argv[1:] if name else argv))
    return _guarded(lambda: _module(name).execute(arguments))


def parser_of(name: str) -> CommandParser:
    """Make the parser of a command; the main one has the empty name."""
    module = _module(name)
    parser = CommandParser(
        prog=f"treadle {name}".strip(),
        description=module.__doc__,
        epilog=None if name else _epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    return parser


def _module(name: str) -> Any:
    return import_module(f"treadle.cli.{name or 'work'}")


def _epilog() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "commands (treadle COMMAND --help tells more):\n" + "\n".join(lines)


def _guarded(command: Callable[[], int]) -> int:
    from treadle.app.exits import Exit
    from treadle.app.report import describe, describe_crash

    try:
        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except TreadleError as error:
        sys.stderr.write(f"{describe(error)}\n")
        return _code(error)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{_describe_missing(error)}\n")
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 - the end of the program: a person reads this
        sys.stderr.write(f"{describe_crash(error)}\n")
        return Exit.FAILED
    return code


def _describe_missing(error: ModuleNotFoundError) -> str:
    """Say which extra brings what is missing; without one it is a defect like any other."""
    from treadle.app.report import describe, describe_crash
    from treadle.app.reports.extras import extra_of, install_command

    extra = extra_of(error.name or "")
    if not extra:
        return describe_crash(error)
    what = f"This needs the extra {extra!r}, which is not installed."
    return describe(ConfigError("extra-missing", what, why=str(error), fix=f"Run: {install_command(extra)}"))


def _code(error: TreadleError) -> int:
    from treadle.app.exits import Exit

    match error:
        case ConfigError():
            return Exit.CONFIG
        case SessionError(code="session-busy"):
            return Exit.TRANSIENT
        case _:
            return Exit.FAILED
