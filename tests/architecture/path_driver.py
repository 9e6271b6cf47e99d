"""The program, which writes down the functions of its own that it ran, in the order in which each began first.

Called as `path_driver.py FILE ARGUMENT...`.
"""

import atexit
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

ran: dict[str, None] = {}


def note(frame: FrameType, event: str, _: Any) -> None:
    code = frame.f_code
    package, _, module = str(frame.f_globals.get("__name__")).partition(".")
    if event == "call" and code.co_flags & CO_OPTIMIZED and package == "treadle":
        ran.setdefault(f"{module.replace('.', '/')}.py {code.co_qualname}")


if __name__ == "__main__":
    file, sys.argv = Path(sys.argv[1]), sys.argv[1:]
    atexit.register(lambda: file.write_text("\n".join(ran)))
    threading.setprofile(note)
    sys.setprofile(note)
    from treadle.__main__ import main

    main()
