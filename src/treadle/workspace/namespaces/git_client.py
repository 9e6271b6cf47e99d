"""Stands for git in the sandbox where git's data is read-only: hands a call to Treadle, and ends as that call does.

Run as `python -I -S git_client.py SOCKET REAL WORD...` by a shell script in the place of git, with git's own words. It
sends its three descriptors with the length of what follows: its folder, the words and the variables of git, each ended
by NUL. The answer is the exit status, a line end, and what is to be said on standard error. Descriptors that are
sockets, as some programs give their children, are not handed on: they could carry more. Their bytes are copied.

Only the standard library, and sparingly: a command waits for this to start.
"""

import _socket
import os
import select
import sys

_KIND, _IS_SOCKET = 0o170000, 0o140000
_LENGTH, _INTEGER, _CHUNK = 8, 4, 65536
_FAILED = 128


def _descriptors() -> "tuple[list[int], dict[int, int]]":
    """Give what is handed on, and what is copied: from which descriptor to which."""
    handed, pumps = [], {}
    for number in (0, 1, 2):
        try:
            kind = os.fstat(number).st_mode & _KIND
        except OSError:
            handed.append(os.open(os.devnull, os.O_RDWR))
            continue
        if kind != _IS_SOCKET:
            handed.append(number)
            continue
        read_end, write_end = os.pipe()
        handed.append(write_end if number else read_end)
        pumps[read_end if number else number] = number or write_end
    return handed, pumps


def _copy(pumps: "dict[int, int]", sock: _socket.socket) -> bytes:
    """Copy until the answer is whole and what was printed has been passed on; gives the answer."""
    poll = select.poll()
    for descriptor in (sock.fileno(), *pumps):
        poll.register(descriptor, select.POLLIN)
    answer, open_still = b"", {sock.fileno(), *(one for one in pumps if one)}
    while open_still:
        for descriptor, _ in poll.poll():
            data = sock.recv(_CHUNK) if descriptor == sock.fileno() else os.read(descriptor, _CHUNK)
            if descriptor == sock.fileno():
                answer += data
            elif data:
                try:
                    os.write(pumps[descriptor], data)
                except OSError:
                    data = b""
            if not data:
                poll.unregister(descriptor)
                open_still.discard(descriptor)
                if descriptor == 0:
                    os.close(pumps[0])
    return answer


def main() -> None:
    """Hand the call to Treadle, or be git itself where there is no Treadle any more."""
    place, real, *words = sys.argv[1:]
    handed, pumps = _descriptors()
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(place)
    except OSError:
        os.execv(real, ["git", *words])  # noqa: S606 - git itself
    variables = [name + b"=" + value for name, value in os.environb.items() if name.startswith(b"GIT_")]
    parts = [
        os.fsencode(os.getcwd()),  # noqa: PTH109 - pathlib would take longer than all the rest
        b"%d" % len(words),
        *map(os.fsencode, words),
        *variables,
    ]
    body = b"".join(part + b"\0" for part in parts)
    ancillary = b"".join(number.to_bytes(_INTEGER, sys.byteorder) for number in handed)
    sock.sendmsg([b"%0*d" % (_LENGTH, len(body))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, ancillary)])
    sock.sendall(body)
    for number in handed:
        if number > 2:
            os.close(number)
    status, _, said = _copy(pumps, sock).partition(b"\n")
    if said:
        os.write(2, said)
    os._exit(int(status) if status.isdigit() else _FAILED)


if __name__ == "__main__":
    main()
