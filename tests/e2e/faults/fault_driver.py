"""The program with one fault built in, called as `fault_driver.py FAULT ARGUMENT...`.

`tool-raises`: list_files fails with an error that nobody expects. `tool-prints`: list_files prints, in Python
and past it. `killed-before-rename`: the program is killed as by
kill -9 when a new file is complete but does not bear its name yet.
"""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from treadle.__main__ import main
from treadle.engine.ports import Prepared
from treadle.tools.list_files import ListFiles

_PREPARE = ListFiles.prepare


async def _raise(self: ListFiles, arguments: Mapping[str, Any]) -> Prepared:
    raise RuntimeError("the disk of list_files is upside down")


async def _print(self: ListFiles, arguments: Mapping[str, Any]) -> Prepared:
    print("noise of Python")
    os.write(1, b"noise of a library\n")
    return await _PREPARE(self, arguments)


def _kill_before_rename(*arguments: object, **options: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _install(fault: str) -> None:
    match fault:
        case "tool-raises":
            ListFiles.prepare = _raise  # type: ignore[method-assign]
        case "tool-prints":
            ListFiles.prepare = _print  # type: ignore[method-assign]
        case "killed-before-rename":
            os.rename = _kill_before_rename
        case _:
            raise SystemExit(f"no such fault: {fault}")


if __name__ == "__main__":
    _install(sys.argv.pop(1))
    sys.exit(main())
