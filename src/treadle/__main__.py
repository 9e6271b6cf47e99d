"""The entry point: `--version` is answered before anything is imported."""

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from treadle import __version__

        sys.stdout.write(f"treadle {__version__}\n")
        return 0
    from treadle.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
