"""The program with one defect built in, called as `broken_program.py DEFECT ARGUMENT...`: an error nobody expects."""

import sys
from typing import Any, NoReturn

from treadle.__main__ import main
from treadle.cli import host
from treadle.headless import host_control
from treadle.headless.frames import FrameMaker
from treadle.headless.host_messages import HostMessages


def _break(*arguments: Any, **options: Any) -> NoReturn:
    raise ValueError("the disk is upside down")


def _install(defect: str) -> None:
    match defect:
        case "command line":
            host._HostLine._task = _break  # type: ignore[method-assign]
        case "opening":
            host._HostLine._wishes = _break  # type: ignore[method-assign]
        case "trust":
            host._HostLine._trust = _break  # type: ignore[method-assign]
        case "frames":
            FrameMaker.take = _break  # type: ignore[method-assign]
        case "message":
            HostMessages._post = _break  # type: ignore[method-assign]
        case "control":
            host_control.init_fields = _break
        case _:
            raise SystemExit(f"no such defect: {defect}")


if __name__ == "__main__":
    _install(sys.argv.pop(1))
    main()
