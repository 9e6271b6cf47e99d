"""Confine this process with Landlock and become the command: the sandbox where bubblewrap is not there.

Run as `python -I -S confine.py [OPTION VALUE]... -- program argument...`. The options are `--list`, `--read` and
`--write` (names of, reading of, and changing of a path and all below it), `--tmp` (a folder for temporary files),
`--git` (a file that git reads for the user's settings) and `--seccomp HEX` (a filter of system calls). Everything else
of the file system is out of reach. `--scopes only` instead of all these leaves files alone and keeps the program from
signals and abstract sockets to others.
"""

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterator

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every processor
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER, _DROP_BOUND = 38, 22, 2, 24  # of prctl(2)
_CAPABILITIES = range(64)
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _DEVICES = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_ALL = (1 << 15) - 1  # every right to files that version 3 knows
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICES
_SCOPES = 0b11  # abstract sockets and signals
_REFUSED = 126
SCOPES_ONLY = ("--scopes", "only")
LEAST_FOR_SCOPES = 6
"""The version of Landlock that knows them."""


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Give the version of Landlock in this kernel; 0 when there is none."""
    if platform.system() != "Linux":
        return 0
    return max(0, int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))))


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _new_ruleset(*, files: bool = True) -> int:
    """Handle every right to files, and from version 6 on also signals and abstract sockets to others."""
    handled = (_ALL | (_DEVICES if version() >= 5 else 0)) if files else 0
    attributes = struct.pack("=QQQ", handled, 0, _SCOPES)[: 24 if version() >= LEAST_FOR_SCOPES else 8]
    return _checked(
        _libc.syscall(_CREATE, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)),
        "the ruleset",
    )


def _open(ruleset: int, path: str, rights: int) -> None:
    """Grant rights to a path and all below it; a path that is gone needs none."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, fd)
    _checked(_libc.syscall(_ADD, ctypes.c_int(ruleset), _PATH_BENEATH, ctypes.c_char_p(rule), ctypes.c_uint(0)), path)
    os.close(fd)


def _filter(code: bytes) -> None:
    program = _Program(len(code) // 8, code)
    _checked(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)), "the filter of system calls")


def _drop_capabilities() -> None:
    """Keep root's capabilities from the program: with them it reads other processes past Landlock."""
    for number in _CAPABILITIES:
        _libc.prctl(_DROP_BOUND, number, 0, 0, 0)


def _options(arguments: list[str]) -> Iterator[tuple[str, str]]:
    return zip(arguments[::2], arguments[1::2], strict=True)


def _confine(options: Iterator[tuple[str, str]]) -> None:
    ruleset = _new_ruleset()
    writable = _ALL | (_DEVICES if version() >= 5 else 0)
    code = b""
    for option, value in options:
        match option:
            case "--list":
                _open(ruleset, value, _READ_FOLDER)
            case "--read":
                _open(ruleset, value, _READ)
            case "--write":
                _open(ruleset, value, writable)
            case "--tmp":
                os.environ["TMPDIR"] = value
                os.environ["XDG_CACHE_HOME"] = f"{value}/cache"
                _open(ruleset, value, writable)
            case "--git":
                os.environ["GIT_CONFIG_GLOBAL"] = value
                _open(ruleset, value, _READ)
            case "--seccomp":
                code = bytes.fromhex(value)
            case _:
                raise OSError(f"unknown option {option}")
    _drop_capabilities()
    _restrict(ruleset)
    if code:
        _filter(code)


def _restrict(ruleset: int) -> None:
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _checked(_libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0)), "the restriction")
    os.close(ruleset)


def main() -> None:
    """Do what the arguments say."""
    end = sys.argv.index("--")
    program = sys.argv[end + 1 :]
    try:
        if sys.argv[1:end] == list(SCOPES_ONLY):
            _restrict(_new_ruleset(files=False))
        else:
            _confine(_options(sys.argv[1:end]))
        os.execvp(program[0], program)  # noqa: S606 - named by Treadle
    except (OSError, ValueError) as error:
        os.write(2, f"The sandbox could not be set up: {error}\n".encode())
        sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
