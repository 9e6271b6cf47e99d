"""Store a provider's key: in the system's keyring if there is one, else in a file that only you can read."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from treadle.protocol.errors import ConfigError

if TYPE_CHECKING:
    from treadle.door.known_models import CallCheck
    from treadle.door.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("provider", help="the provider, such as anthropic (`treadle providers` lists them)")
    parser.add_argument(
        "--as",
        dest="profile",
        metavar="NAME",
        default="",
        help="store it under a name, for --profile NAME and /profile",
    )
    parser.add_argument("--key-stdin", action="store_true", help="read the key from standard input")
    parser.add_argument("--model", metavar="NAME", default="", help="the model to try the key with")
    parser.add_argument("--no-check", action="store_true", help="store the key without trying it")


def execute(arguments: argparse.Namespace) -> int:
    """Read the key, try it with one call, store it."""
    from treadle.door.known_models import checked_name, clean_key, keep_key, key_stored, winning_origin
    from treadle.door.settings import load_settings

    settings = load_settings({})
    provider = checked_name(settings, arguments.provider, arguments.profile)
    key = clean_key(_read_key(provider, from_stdin=arguments.key_stdin))
    check = None if arguments.no_check else _check(arguments, settings, provider, key)
    place = keep_key(provider, key, check)
    name, _, profile = provider.partition("@")
    whose = f"{name} for the profile {profile}" if profile else name
    sys.stdout.write(f"{key_stored(whose, place, check)}\n")
    origin = winning_origin(settings, provider)
    if profile:
        sys.stdout.write(f"{_how_to_use(settings, provider)}\n")
    elif origin and origin != place:
        sys.stdout.write(f"{origin} is set in the environment and overrides it.\n")
    return 0


def _how_to_use(settings: "Settings", provider: str) -> str:
    """Say when the key of a profile is used, and that a key in the environment does not override it."""
    from treadle.door.known_models import winning_origin

    name, _, profile = provider.partition("@")
    text = f"Use it with --profile {profile}, or /profile {profile} in a session."
    usual = winning_origin(settings, name)
    return f"{text} Without a profile the key from {usual} is used." if usual else text


def _check(arguments: argparse.Namespace, settings: "Settings", provider: str, key: str) -> "CallCheck | None":
    """Try the key; a person at a terminal sees that, and may skip it."""
    from treadle.door.known_models import try_key

    work = try_key(settings, provider, key, arguments.model)
    if arguments.key_stdin or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return asyncio.run(work)
    from treadle.tui.before.key_entry import with_skip
    from treadle.tui.ending import Left
    from treadle.tui.paint.look import prepared_terminal

    with prepared_terminal(settings) as look:
        check = asyncio.run(with_skip(f"Trying the key with {provider}", work, look))
    if isinstance(check, Left):
        raise SystemExit(check.code)
    return check


def _read_key(provider: str, *, from_stdin: bool) -> str:
    from treadle.door.known_models import login_command

    if from_stdin:
        return sys.stdin.readline()
    if not sys.stdin.isatty():
        raise ConfigError(
            "no-terminal",
            "A key can be typed only in a terminal, where it is hidden.",
            why="Standard input is not a terminal.",
            fix=f"In a script: {login_command(provider)} --key-stdin",
        )
    from getpass import getpass

    return getpass(f"Key of {provider} (hidden): ")
