"""The program, which writes down the names of its loaded modules when the first request is about to go out.

Called as `modules_driver.py FILE ARGUMENT...`.
"""

import sys
from pathlib import Path

from treadle.__main__ import main
from treadle.engine.perform import Performer

call_model = Performer._call_model


async def noted(self: Performer, step: int, attempt: int) -> None:
    Path(sys.argv[0]).write_text("\n".join(sorted(sys.modules)))
    await call_model(self, step, attempt)


if __name__ == "__main__":
    Performer._call_model = noted  # type: ignore[method-assign]
    sys.argv = sys.argv[1:]
    sys.exit(main())
