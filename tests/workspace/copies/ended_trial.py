"""Tries out copies, and after a while ends as Treadle does, in the midst of it: `ended_trial.py FOLDER SECONDS`."""

import sys
import time
from pathlib import Path
from threading import Thread

from tests.workspace.copies.copied import Bench
from tests.workspace.sandbox.running import bubblewrap

from treadle import __main__
from treadle.workspace.copies import why_no_copy


def main() -> int:
    bench, seconds = Bench(Path(sys.argv[1])), float(sys.argv[2])
    state = bubblewrap()
    Thread(target=lambda: why_no_copy(bench.profile(), state, bench.data), daemon=True).start()
    time.sleep(seconds)
    return 0


if __name__ == "__main__":
    __main__.end(main())
