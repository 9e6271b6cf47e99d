"""Run the measurements: all of them, or those named on the command line."""

import os
import sys
from importlib import import_module

NAMES = (
    "startup",
    "subagents",
    "batch",
    "engine",
    "context",
    "store",
    "sessions",
    "parsing",
    "providers",
    "edits",
    "policy",
    "tools",
    "load",
    "tree",
    "terminal",
    "mentions",
    "checkpoints",
    "editor",
    "vscode",
    "servers",
    "web",
    "step",
    "peers",
)


def main() -> None:
    """Print the figures."""
    os.environ["ANEW"] = "1"  # what is measured starts as a shell starts it
    for name in sys.argv[1:] or NAMES:
        try:
            module = import_module(f"bench.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"bench.{name}":
                raise
            continue
        print(f"\n== {name} ==", flush=True)
        module.main()


if __name__ == "__main__":
    main()
