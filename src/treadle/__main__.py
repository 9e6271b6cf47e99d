"""The entry point: `--version` is answered before anything is imported, and the end is quick."""

import atexit
import gc
import os
import signal
import sys

from treadle.cli.streams import Loading, flush_streams, open_streams

LOOK_FOR_CYCLES = (200_000, 10, 20)
"""Looking for cycles every 700 allocations costs a tenth of the start, which makes more than a hundred thousand objects
and hardly any garbage."""


TYPE_CHECKING = False
"""`typing` takes longer to load than `--version` to answer."""
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command line, and end the process with its exit code.

    Python would first take apart every module and object, which takes as long as a third of the start. By now sessions
    are closed, and what the streams held back is written.
    """
    end(_run())


def end(code: int) -> "NoReturn":
    """End the process now, whatever its threads do; what is registered for its end is called."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what Python itself calls at its end
    os._exit(code)


def _run() -> int:
    open_streams()
    if sys.argv[1:] in (["--version"], ["-V"], ["-v"]):
        from treadle.commit import version_words

        sys.stdout.write(f"{version_words()}\n")
        return 0 if flush_streams() is None else 1
    with Loading():
        gc.set_threshold(*LOOK_FOR_CYCLES)
        from treadle.cli.import_cache import install_import_cache

        cache = install_import_cache(__file__)
        from treadle.cli.main import run

    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with this code
    cache.save()
    return code


if __name__ == "__main__":
    main()
