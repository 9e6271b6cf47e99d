"""The program with an audit hook that writes down every process it starts and every file it opens.

Called as `spy_driver.py RECORD ARGUMENT...`; RECORD gets one line for each: `child` or `open`, and what.
"""

import os
import sys

CHILDREN = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn"}
)


def spy(record: int) -> None:
    """Install the hook; `record` is a descriptor."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in CHILDREN:
            os.write(record, f"child\t{event} {arguments!r}\n".encode(errors="replace"))
        elif event == "open" and isinstance(arguments[0], str):
            os.write(record, f"open\t{arguments[0]}\n".encode(errors="replace"))

    sys.addaudithook(hook)


if __name__ == "__main__":
    spy(os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    from treadle.__main__ import main

    sys.exit(main())
