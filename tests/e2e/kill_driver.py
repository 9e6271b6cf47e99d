"""The program, killed as by kill -9 right before or right after its Nth commit to the log.

Called as `kill_driver.py WHEN N ARGUMENT...`; a run with fewer commits ends as it would.
"""

import os
import signal
import sys
from collections.abc import Sequence

from treadle.__main__ import main
from treadle.protocol.events import Event
from treadle.store.appending import SessionLog


def drive(when: str, target: int, arguments: list[str]) -> int:
    commits = 0
    append = SessionLog.append

    async def counted(self: SessionLog, events: Sequence[Event], *, durable: bool) -> None:
        nonlocal commits
        commits += 1
        if when == "before" and commits == target:
            os.kill(os.getpid(), signal.SIGKILL)
        await append(self, events, durable=durable)
        if when == "after" and commits == target:
            os.kill(os.getpid(), signal.SIGKILL)

    SessionLog.append = counted  # type: ignore[method-assign]
    sys.argv = ["treadle", *arguments]
    return main()


if __name__ == "__main__":
    sys.exit(drive(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
