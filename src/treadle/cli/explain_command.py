"""Explain an error by its code, offline; without a code, list them all."""

import argparse
import sys

from treadle.protocol.errors import ConfigError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("code", nargs="?", help="the code, such as key-missing")


def execute(arguments: argparse.Namespace) -> int:
    """Print the explanation."""
    from treadle.door.program import EXPLANATIONS, nearest_codes

    if arguments.code is None:
        sys.stdout.writelines(f"{code}: {one.meaning}\n" for code, one in EXPLANATIONS.items())
        return 0
    code = arguments.code.strip("[]").lower()
    explanation = EXPLANATIONS.get(code)
    if explanation is None:
        near = " or ".join(nearest_codes(code))
        fix = f"Did you mean {near}?" if near else "`treadle explain` lists them all."
        raise ConfigError(
            "code-unknown", f"There is no error {code!r}.", why="Treadle has no error with that code.", fix=fix
        )
    sys.stdout.write(f"{code}\n\n{explanation.meaning}\n\nFix: {explanation.remedy}\n")
    return 0
