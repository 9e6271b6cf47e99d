"""The command line: which command runs; every error ends in four lines and an exit code."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import MappingProxyType

from treadle.protocol.errors import ConfigError, SessionError, TreadleError

COMMANDS = MappingProxyType(
    {
        "demo": "see the main job done on a sample project, without a key",
        "sessions": "list sessions",
        "show": "show what happened in a session",
        "edits": "show how well models edit; apply an edit without a model",
        "parse": "read model replies without a model",
        "policy": "ask the security layer what it would say, and why",
        "docs": "print generated pages: states, schema",
        "scripted": "serve a scripted model over HTTP",
        "start": "work interactively if a model is configured, else run the demo",
    }
)
"""The commands besides the main one; each is the module of `treadle.cli` of the same name."""


def run(argv: Sequence[str]) -> int:
    """Run a command; returns the exit code."""
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    module = import_module(f"treadle.cli.{name or 'work'}")
    parser = argparse.ArgumentParser(
        prog=f"treadle {name}".strip(),
        description=module.__doc__,
        epilog=None if name else _epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    arguments = parser.parse_args(list(argv[1:] if name else argv))
    return _guarded(lambda: module.execute(arguments))


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
    except Exception as error:  # noqa: BLE001 - the end of the program: a person reads this
        sys.stderr.write(f"{describe_crash(error)}\n")
        return Exit.FAILED
    return code


def _code(error: TreadleError) -> int:
    from treadle.app.exits import Exit

    match error:
        case ConfigError():
            return Exit.CONFIG
        case SessionError(code="session-busy"):
            return Exit.TRANSIENT
        case _:
            return Exit.FAILED
