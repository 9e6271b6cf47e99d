"""The entry point: `--version` is answered before anything is imported."""

import gc
import sys

from treadle.cli.streams import flush_streams, open_streams

LOOK_FOR_CYCLES = (100_000, 20, 20)
"""Looking for cycles every 700 allocations costs a tenth of the start, which makes objects and hardly any garbage."""


def main() -> int:
    """Run the command line; returns the exit code."""
    open_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from treadle import __version__

        sys.stdout.write(f"treadle {__version__}\n")
        return 0 if flush_streams() is None else 1
    gc.set_threshold(*LOOK_FOR_CYCLES)
    from treadle.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
