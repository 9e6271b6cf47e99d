"""The program, which writes down what it loaded and what it ran when the first request is about to go out.

Called as `modules_driver.py FILE ARGUMENT...`: the programs line by line, an empty line, the modules.
"""

import os
import sys
from pathlib import Path
from typing import Any

from treadle.__main__ import main
from treadle.app.session import live
from treadle.engine.runtime.model_call import CallBill
from treadle.engine.runtime.perform import Performer

call_model = Performer._call_model
programs: list[str] = []


def note_program(event: str, details: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"):
        programs.append(Path(os.fsdecode(details[0])).name if details else event)


async def noted(self: Performer, step: int, attempt: int, bill: CallBill) -> None:
    Path(sys.argv[0]).write_text("\n".join([*programs, "", *sorted(sys.modules)]))
    await call_model(self, step, attempt, bill)


if __name__ == "__main__":
    sys.addaudithook(note_program)
    Performer._call_model = noted  # type: ignore[method-assign]
    live._SHARED_AFTER = 600.0  # on a busy machine the request may go out after that
    sys.argv = sys.argv[1:]
    sys.exit(main())
