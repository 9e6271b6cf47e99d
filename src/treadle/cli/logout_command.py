"""Remove a provider's stored key."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("provider", help="the provider")


def execute(arguments: argparse.Namespace) -> int:
    """Remove the key from the keyring or the file."""
    from treadle.door.known_models import remove_key, winning_origin
    from treadle.door.settings import load_settings

    settings = load_settings({})
    removed = remove_key(settings, arguments.provider)
    sys.stdout.write("The stored key was removed.\n" if removed else "No key was stored.\n")
    origin = winning_origin(settings, arguments.provider)
    if origin:
        sys.stdout.write(f"The key in {origin} is still there.\n")
    return 0
