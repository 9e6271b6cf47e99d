"""Remove a provider's stored key."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("provider", help="the provider")
    parser.add_argument(
        "--as", dest="profile", metavar="NAME", default="", help="the name that its key is stored under"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Remove the key from the keyring or the file."""
    from treadle.door.known_models import checked_name, remove_key, winning_origin
    from treadle.door.settings import load_settings

    settings = load_settings({})
    provider = checked_name(settings, arguments.provider, arguments.profile)
    removed = remove_key(settings, provider)
    sys.stdout.write("The stored key was removed.\n" if removed else "No key was stored.\n")
    origin = winning_origin(settings, provider)
    if origin:
        sys.stdout.write(f"The key in {origin} is still there.\n")
    return 0
