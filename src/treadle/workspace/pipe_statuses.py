"""How the parts of a line's last pipe ended, asked of bash by a guard; see there why so little is imported."""

import os

_PIPES = 213  # a descriptor that no script uses
_REPORT_PIPES = b"""unset BASH_ENV
trap '{ printf %%s "${PIPESTATUS[*]}" >&%d; } 2>/dev/null' EXIT
"""


def ask_for_pipes(line: str, shell: str) -> int:
    """Have bash write at its end how the parts of its last pipe ended; gives from which byte on, 0 for not at all.

    The line stays as it is. What bash reads first, and writes to, is a file without a name.
    """
    if "|" not in line or not shell.endswith("/bash") or "BASH_ENV" in os.environ or not hasattr(os, "memfd_create"):
        return 0
    try:
        os.dup2(os.memfd_create("pipes"), _PIPES)
    except OSError:
        return 0
    os.environ["BASH_ENV"] = f"/dev/fd/{_PIPES}"
    return os.write(_PIPES, _REPORT_PIPES % _PIPES)


def pipe_statuses(begin: int) -> bytes:
    """Read the statuses; nothing for what no shell would write."""
    statuses = os.pread(_PIPES, 1024, begin) if begin else b""
    return statuses if statuses.replace(b" ", b"").isdigit() else b""
