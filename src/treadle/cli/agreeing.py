"""Asking on a terminal before something is done for good."""

import sys

from treadle.protocol.errors import ConfigError


def agreed(question: str, *, yes: bool) -> bool:
    """Ask, unless `--yes` was given; raises `ConfigError` where nobody can be asked."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "yes-missing", "Nothing was done.", why="There is no terminal to ask on.", fix="Add --yes to do it."
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
