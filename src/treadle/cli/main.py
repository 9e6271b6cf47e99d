"""The command line: which command runs; every error ends in four lines and an exit code."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import takewhile

from treadle.cli.streams import Loading, flush_streams, is_full, is_hangup, is_unwritable
from treadle.cli.task_words import COMMANDS, GROUPS, SELDOM, task_of
from treadle.cli.work import SETTINGS

TYPE_CHECKING = False
"""`--help` needs neither the types nor the errors of the program."""
if TYPE_CHECKING:
    from typing import Any

    from treadle.cli.parser import CommandParser


def run(argv: Sequence[str]) -> int:
    """Run a command; returns the exit code, which never is Python's 120 for a stream that is gone."""
    code = _guarded(lambda: _run(argv))
    lost = flush_streams()
    return _lost(lost) if lost is not None and code == 0 else code


def _run(argv: Sequence[str]) -> int:
    if "TZ" in os.environ:
        from treadle.cli.time_zone import use_known_zone

        use_known_zone()
    if not os.environ.get("HOME", "").startswith("/"):
        from treadle.cli.surroundings import use_known_home

        use_known_home()
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    if not name:
        flags = {word.partition("=")[0] for word in argv}
        if "--output-format" in flags and not flags.isdisjoint({"--input-format", "--verbose"}):
            from treadle.cli.host import serve_host

            _quieten()
            return serve_host(argv)
        words = list(takewhile(lambda word: not word.startswith("-"), argv))
        task_of(words, COMMANDS)  # before an option that only the command has is called unknown
    given = argv[1:] if name else argv
    arguments = _read(name, given)
    arguments.given = tuple(given)  # for a batch, which is begun again with them
    _quieten()
    return int(_module(name).execute(arguments))


def _quieten() -> None:
    """Have what libraries log and warn of go to the program's log, whatever the command loads or connects to."""
    from treadle.door.program import log_quietly

    log_quietly()


def _read(name: str, words: Sequence[str]) -> "Any":
    """Read what the command line says to a command; ends the program for help and mistakes."""
    if not name:
        from treadle.cli.plain import plain_arguments

        arguments = plain_arguments(_module(name).configure, words)
        if arguments is not None:
            return arguments
    return parser_of(name).read(list(words))


def parser_of(name: str) -> "CommandParser":
    """Make the parser of a command; the main one has the empty name."""
    from treadle.cli.parser import CommandParser

    module = _module(name)
    parser = CommandParser(prog=f"treadle {name}".strip(), description=module.__doc__, allow_abbrev=False)
    if name:
        parser.listed_elsewhere = SETTINGS
    else:
        parser.after = commands_text
        parser.usage = 'treadle [options] ["task"], or treadle COMMAND ...'
    module.configure(parser)
    return parser


def _module(name: str) -> "Any":
    with Loading():
        return import_module(f"treadle.cli.{name}_command" if name else "treadle.cli.work")


def commands_text(*, seldom: bool = False) -> str:
    """List the commands by what they are for; with `seldom` also those that few people need."""
    from shutil import get_terminal_size

    from treadle.door.program import wrapped

    width = max(map(len, COMMANDS))
    lines = ["", "commands (treadle COMMAND --help shows more):"]
    for group, rows in GROUPS.items():
        if seldom or group != SELDOM:
            lines += ["", f"{group}:", *(f"  {name:<{width}}  {text}" for name, text in rows.items())]
    return wrapped("\n".join([*lines, ""]), get_terminal_size().columns)


def _guarded(command: Callable[[], int]) -> int:
    try:
        return command()
    except KeyboardInterrupt:
        from treadle.door.program import Exit

        return Exit.INTERRUPTED
    except SystemExit as end:
        return int(end.code or 0)
    except Exception as error:  # noqa: BLE001 - the end of the program: a person reads this
        return _failed(error)


def _failed(error: Exception) -> int:
    from treadle.cli.surroundings import missing_surroundings
    from treadle.door.program import Exit, describe_error, describe_unusable_folder, exit_of_error, is_own_folder
    from treadle.protocol.errors import TreadleError

    error = missing_surroundings(error) or error
    match error:
        case OSError() if is_own_folder(error):
            return _report(describe_unusable_folder(error), Exit.FAILED)
        case OSError():
            return _lost(error) if is_unwritable(error) else _crash(error)
        case TreadleError():
            return _report(describe_error(error), exit_of_error(error))
        case ModuleNotFoundError():
            return _report(_describe_missing(error), Exit.FAILED)
        case _:
            return _crash(error)


def _crash(error: BaseException) -> int:
    from treadle.door.program import Exit, describe_crash

    return _report(describe_crash(error), Exit.FAILED)


def _report(text: str, code: int) -> int:
    """Write an error, unless nobody is left to read it."""
    from treadle.door.program import write_wrapped

    flush_streams()
    with suppress(OSError):
        write_wrapped(sys.stderr, text)
    return code


def _lost(error: OSError) -> int:
    """Give the exit code of a program whose reader has left, or whose terminal is gone."""
    from treadle.door.program import Exit, four_lines

    if is_full(error):
        return _report(
            four_lines("The output cannot be written.", str(error), "Write it to another place."), Exit.FAILED
        )
    return Exit.HANGUP if is_hangup(error) else Exit.FAILED


def _describe_missing(error: ModuleNotFoundError) -> str:
    """Say which extra brings what is missing; without one it is a defect like any other."""
    from treadle.door.program import describe_crash, describe_error
    from treadle.door.reports import extra_of, install_command
    from treadle.protocol.errors import ConfigError

    extra = extra_of(error.name or "")
    if not extra:
        return describe_crash(error)
    what = f"This needs the extra {extra!r}, which is not installed."
    return describe_error(ConfigError("extra-missing", what, why=str(error), fix=f"Run: {install_command(extra)}"))
