"""Applies what a copy holds and is killed at one change of the disk: `killed_apply.py FOLDER STEP ROOT...`."""

import os
import signal
import sys
from pathlib import Path

from treadle.workspace.commands.wrapping import UNWRAPPED
from treadle.workspace.copies import Copy, apply_changes, nothing_is_held, read_changes

_CHANGES = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate"}
)


def main() -> None:
    folder, step, *roots = sys.argv[1:]
    copy = Copy(Path(folder), tuple(roots), UNWRAPPED)
    digest = read_changes(copy, nothing_is_held).digest
    done = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in _CHANGES or writes:
            done += 1
            if done == int(step):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    apply_changes(copy, digest, nothing_is_held)


if __name__ == "__main__":
    main()
