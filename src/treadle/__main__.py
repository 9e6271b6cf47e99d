"""The entry point: `--version` is answered before anything is imported."""

import gc
import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from treadle import __version__

        sys.stdout.write(f"treadle {__version__}\n")
        return 0
    # Looking for cycles every 700 allocations costs a tenth of the start: importing makes many objects and no garbage.
    gc.set_threshold(100_000, 20, 20)
    from treadle.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
