"""How the parts of a line's pipes ended, asked of bash by a guard; see there why so little is imported."""

import os

_PIPES = 213  # a descriptor that no script uses
_REPORT_PIPES = b"""unset BASH_ENV
trap '{ printf %%s "${PIPESTATUS[*]}" >&%d; } 2>/dev/null' EXIT
"""
_REPORT_EARLIER_PIPES = b"""trap '{ _treadle="${PIPESTATUS[*]}"
case $_treadle in *" "*) printf "%%s;" "$_treadle" >&%d;; esac; } 2>/dev/null' DEBUG
"""
_MOST = 1024
_LOOPS = frozenset(("for", "while", "until", "select"))
"""Words of lines in which only the last pipe is looked at: to look before each command of a loop takes too long."""


def ask_for_pipes(line: str, shell: str) -> int:
    """Have bash write how the parts of its pipes ended; gives from which byte on, 0 for not at all.

    The line stays as it is. What bash reads first, and writes to, is a file without a name.
    """
    if "|" not in line or not shell.endswith("/bash") or "BASH_ENV" in os.environ or not hasattr(os, "memfd_create"):
        return 0
    try:
        os.dup2(os.memfd_create("pipes"), _PIPES)
    except OSError:
        return 0
    os.environ["BASH_ENV"] = f"/dev/fd/{_PIPES}"
    several = line.replace("||", "").count("|") > 1 and not _LOOPS & set(
        line.replace(";", " ").replace("(", " ").replace("{", " ").split()
    )
    earlier = _REPORT_EARLIER_PIPES % _PIPES if several else b""
    return os.write(_PIPES, _REPORT_PIPES % _PIPES + earlier)


def pipe_statuses(begin: int) -> bytes:
    """Read the statuses, those of each pipe ended by a semicolon but the last; nothing for what no shell would write.

    Of an earlier pipe bash tells before each part of the next one.
    """
    told = os.pread(_PIPES, _MOST, begin).split(b";") if begin else []
    kept = [one for at, one in enumerate(told) if one and (at == 0 or one != told[at - 1] or at == len(told) - 1)]
    return b";".join(kept) if all(one.replace(b" ", b"").isdigit() for one in kept) else b""
