"""The program, which writes down which of its modules it has loaded when it is told to, or at its end.

Called as `starts_driver.py FILE ARGUMENT...`; SIGUSR1 tells it.
"""

import atexit
import signal
import sys
from pathlib import Path

PLACE = Path(sys.argv[1])


def write(*_: object) -> None:
    whole = PLACE.with_suffix(".new")
    whole.write_text("\n".join(name for name in sorted(sys.modules) if name.startswith("treadle")))
    whole.rename(PLACE)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, write)
    atexit.register(write)
    sys.argv = [sys.argv[0], *sys.argv[2:]]
    from treadle.__main__ import main

    main()
