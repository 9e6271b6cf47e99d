"""Running one command on a copy while somebody watches: its output passes on as it comes, and its end is waited for."""

import os
import selectors
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from treadle.workspace.copies.making import Copy
from treadle.workspace.diagnostics.tether import tethered

_CHUNK = 64 * 1024
_REMEMBERED = 64 * 1024

_Sink = Callable[[bytes], None]
"""Takes output."""


def run_on_copy(
    copy: Copy, words: Sequence[str], variables: Mapping[str, str], *, out: _Sink, err: _Sink
) -> tuple[int, str]:
    """Run a program with empty input; gives its exit status and the end of what it printed.

    When this is interrupted the command is ended with all that it started. Raises `OSError`.
    """
    process = subprocess.Popen(
        tethered(copy.wrapping.around(words)),
        bufsize=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(variables),
        start_new_session=True,
    )
    try:
        printed = _pass_on({process.stdout: out, process.stderr: err})
        return process.wait(), printed.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _pass_on(sinks: Mapping[IO[bytes] | None, _Sink]) -> bytes:
    """Hand on what comes until both pipes end; gives the end of it."""
    printed = b""
    with selectors.DefaultSelector() as selector:
        for pipe, sink in sinks.items():
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, sink)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                printed = (printed + data)[-_REMEMBERED:]
                key.data(data)
    return printed
