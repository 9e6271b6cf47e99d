"""List the providers: address, wire API, key variable, and whether they are ready to use."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from treadle.door.known_models import Models, describe_profiles, profile_lines, provider_lines
    from treadle.door.settings import load_settings
    from treadle.protocol.codec import encode

    settings = load_settings({})
    lines = list(provider_lines(Models(settings)))
    width = max(len(line.name) for line in lines)
    for line in lines:
        if arguments.json:
            sys.stdout.write(f"{encode(line).decode()}\n")
            continue
        state = f"key from {line.key_origin}" if line.key_origin else line.problem or "no key needed"
        keys = " or ".join(line.key_variables) or "-"
        mark = "*" if line.configured else " "
        sys.stdout.write(
            f"{mark} {line.name:<{width}}  {line.title}  {line.base_url}  {line.wire}  {keys}  ({state})\n"
        )
    profiles = list(profile_lines(settings))
    if profiles and not arguments.json:
        sys.stdout.write(f"{describe_profiles(settings, f'@{settings.profile}/')}\n")
    if not arguments.json:
        sys.stderr.write("* is ready to use. `treadle login PROVIDER` stores a key.\n")
    return 0
